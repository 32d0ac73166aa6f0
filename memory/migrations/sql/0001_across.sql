-- The functions that look across agents. SECURITY DEFINER, owned by the owner role; they return ids, versions and states, never text of a
-- person. Everything else happens under row-level security.

-- Places and people -----------------------------------------------------------------------------------

-- Finds or makes the agent of a person. Two first messages at once meet in the unique key.
CREATE FUNCTION agent_of(p_platform text, p_realm text, p_user text, p_name text, p_locale text, p_zone text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE found bigint; made bigint;
BEGIN
  SELECT coalesce(merged_into, agent_id) INTO found FROM identities
    WHERE platform = p_platform AND realm = p_realm AND user_id = p_user;
  IF found IS NULL THEN
    INSERT INTO agents (locale, timezone) VALUES (p_locale, p_zone) RETURNING id INTO made;
    INSERT INTO identities (platform, realm, user_id, agent_id, display_name)
      VALUES (p_platform, p_realm, p_user, made, p_name) ON CONFLICT DO NOTHING;
    SELECT coalesce(merged_into, agent_id) INTO found FROM identities
      WHERE platform = p_platform AND realm = p_realm AND user_id = p_user;
    IF found <> made THEN DELETE FROM agents WHERE id = made; END IF;
  ELSE
    UPDATE identities SET display_name = p_name, unreachable_since = NULL
      WHERE platform = p_platform AND realm = p_realm AND user_id = p_user
        AND (display_name <> p_name OR unreachable_since IS NOT NULL);
  END IF;
  RETURN found;
END $$;

-- Finds or makes a place and takes over what its platform says of it now. A thread follows its parent when that
-- becomes stricter. A direct message belongs to the first agent seen in it.
CREATE FUNCTION place_of(p_platform text, p_realm text, p_workspace text, p_external text, p_kind text, p_name text,
                         p_parent text, p_agent bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE place bigint; parent bigint; old_kind text; owner bigint; parent_kind text;
BEGIN
  IF p_parent IS NOT NULL THEN
    SELECT id, kind INTO parent, parent_kind FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_parent;
    -- A thread is never wider than its channel, whatever is said of it.
    IF p_kind = 'public' AND parent_kind <> 'public' THEN p_kind := parent_kind; END IF;
  END IF;
  owner := CASE WHEN p_kind = 'direct' THEN p_agent END;
  SELECT id, kind INTO place, old_kind FROM places
    WHERE platform = p_platform AND realm = p_realm AND external_id = p_external;
  IF place IS NULL THEN
    INSERT INTO places (platform, realm, workspace, external_id, kind, name, parent_id, owner_id)
      VALUES (p_platform, p_realm, p_workspace, p_external, p_kind, p_name, parent, owner)
      ON CONFLICT (platform, realm, external_id) DO UPDATE SET name = excluded.name RETURNING id INTO place;
  ELSIF old_kind <> p_kind THEN
    UPDATE places SET kind = p_kind, name = p_name, policy_version = policy_version + 1 WHERE id = place;
    IF p_kind <> 'public' THEN
      UPDATE places SET kind = p_kind, policy_version = policy_version + 1 WHERE parent_id = place AND kind = 'public';
    END IF;
  ELSE
    UPDATE places SET name = p_name, owner_id = coalesce(owner_id, owner) WHERE id = place AND (name <> p_name OR owner_id IS DISTINCT FROM coalesce(owner_id, owner));
  END IF;
  RETURN place;
END $$;

CREATE FUNCTION conversation_of(p_agent bigint, p_place bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE found bigint;
BEGIN
  SELECT id INTO found FROM conversations WHERE agent_id = p_agent AND place_id = p_place;
  IF found IS NULL THEN
    INSERT INTO conversations (agent_id, place_id) VALUES (p_agent, p_place)
      ON CONFLICT (agent_id, place_id) DO UPDATE SET place_id = excluded.place_id RETURNING id INTO found;
  END IF;
  RETURN found;
END $$;

-- Names the agent and the usable places for the rest of the transaction: rule 5 of the design.
-- p_place null with p_everything: the person's own view, an admin's or an erasure; every place of the agent is whole.
CREATE FUNCTION enter(p_agent bigint, p_place bigint, p_everything boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE here places; whole bigint[]; writable bigint[] := '{}'; public_now bigint[] := '{}'; shared bigint[] := '{}'; crosses boolean;
BEGIN
  IF p_everything THEN
    SELECT array_agg(place_id) INTO whole FROM conversations WHERE agent_id = p_agent;
    whole := array_append(whole, p_place);
    writable := whole;
  ELSIF p_place IS NOT NULL THEN
    SELECT * INTO here FROM places WHERE id = p_place;
    IF here.kind = 'direct' AND here.owner_id = p_agent THEN
      SELECT cross_accounts INTO crosses FROM agents WHERE id = p_agent;
      SELECT array_agg(p.id) INTO whole FROM conversations c JOIN places p ON p.id = c.place_id
        WHERE c.agent_id = p_agent AND (crosses OR (p.platform = here.platform AND p.realm = here.realm));
      whole := array_append(whole, p_place);
    ELSE
      whole := ARRAY[p_place];
      SELECT coalesce(array_agg(p.id) FILTER (WHERE p.kind = 'public' AND p.workspace = here.workspace), '{}'),
             coalesce(array_agg(p.id) FILTER (WHERE p.workspace = here.workspace OR p.owner_id = p_agent), '{}')
        INTO public_now, shared FROM conversations c JOIN places p ON p.id = c.place_id
        WHERE c.agent_id = p_agent AND p.platform = here.platform AND p.realm = here.realm;
    END IF;
    writable := ARRAY[p_place];
  END IF;
  whole := array_remove(coalesce(whole, '{}'), NULL);
  PERFORM set_config('keepsake.agent', p_agent::text, true), set_config('keepsake.whole', whole::text, true),
          set_config('keepsake.public', public_now::text, true), set_config('keepsake.shared', shared::text, true),
          set_config('keepsake.writable', array_remove(coalesce(writable, '{}'), NULL)::text, true);
END $$;

-- Inbox -----------------------------------------------------------------------------------------------

-- The agent row is locked FOR NO KEY UPDATE throughout: its holders exclude each other, but not the key locks that every insert
-- with a foreign key to agents takes. FOR UPDATE would deadlock two transactions that both inserted before they asked for it.

-- Takes one event in. The agent row lock gives the gapless number and makes the wake flag exact.
-- p_burst_ms: how long after it more of the same burst is waited for; zero for what must not wait.
-- The agent is woken with it. Null: a redelivery, an event of an erased person, or no such agent; nothing was stored.
CREATE FUNCTION accept_event(p_agent bigint, p_place bigint, p_kind text, p_origin text, p_source text, p_idem text,
                             p_payload jsonb, p_burst_ms integer, p_now timestamptz, p_erased bytea DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE a agents; new_id bigint;
BEGIN
  SELECT * INTO a FROM agents WHERE id = p_agent FOR NO KEY UPDATE;
  IF NOT FOUND OR EXISTS (SELECT 1 FROM erased_events WHERE hash = p_erased AND until > p_now) THEN
    RETURN NULL;
  END IF;
  INSERT INTO events (agent_id, seq, place_id, visibility, kind, origin, source, idem, payload, burst_ms, created_at)
    VALUES (p_agent, a.next_seq, p_place, (SELECT p.kind FROM places p WHERE p.id = p_place), p_kind, p_origin, p_source, p_idem, p_payload,
            p_burst_ms, p_now)
    ON CONFLICT (source, idem) DO NOTHING RETURNING id INTO new_id;
  IF new_id IS NULL THEN
    RETURN NULL;
  END IF;
  UPDATE agents SET next_seq = next_seq + 1, wake = true WHERE id = p_agent;
  IF NOT a.wake THEN PERFORM defer_wake(p_agent); END IF;
  RETURN new_id;
END $$;

-- All of the way in, in one statement: the person's agent, the place, the conversation, the event. What it makes for an event that is not
-- stored is taken back: a late redelivery must not bring an erased person's agent back.
CREATE FUNCTION take_in(p_platform text, p_realm text, p_user text, p_name text, p_locale text, p_zone text, p_workspace text, p_external text,
                        p_place_kind text, p_place_name text, p_parent text, p_kind text, p_origin text, p_idem text, p_payload jsonb, p_burst_ms integer,
                        p_now timestamptz, p_erased bytea)
RETURNS TABLE (agent_id bigint, place_id bigint, event_id bigint)
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  agent_id := agent_of(p_platform, p_realm, p_user, p_name, p_locale, p_zone);
  place_id := place_of(p_platform, p_realm, p_workspace, p_external, p_place_kind, p_place_name, p_parent, agent_id);
  PERFORM conversation_of(agent_id, place_id);
  event_id := accept_event(agent_id, place_id, p_kind, p_origin, p_platform, p_idem, p_payload, p_burst_ms, p_now, p_erased);
  IF event_id IS NULL THEN RAISE EXCEPTION USING ERRCODE = 'KS003'; END IF;
  RETURN NEXT;
EXCEPTION WHEN SQLSTATE 'KS003' THEN
  RETURN NEXT;
END $$;

-- Takes an agent's turn: raises the epoch, goes on with the unfinished turn or opens one for the longest run of
-- waiting events of one place and one origin. No row: nothing waits, and the wake flag is down.
-- wait_until set: a burst is being waited for, at most p_burst_cap_ms after its first message; ask again then.
-- A turn whose events were taken p_max_attempts times without a clean exit is poison: its events become dead
-- letters, the person gets p_apology once, and the next run is looked at.
CREATE FUNCTION claim_turn(p_agent bigint, p_now timestamptz, p_limit integer, p_max_attempts integer, p_burst_cap_ms integer, p_apology text)
RETURNS TABLE (epoch bigint, turn_id bigint, place_id bigint, resumed boolean, wait_until timestamptz)
LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE a agents; t turns; chosen bigint[]; first events; run_place bigint; ready timestamptz; alive boolean;
BEGIN
  -- A claim that a crash of the server takes back never was: its turn is not there, or its version is, and the events wait.
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT * INTO a FROM agents WHERE id = p_agent FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE agents SET epoch = a.epoch + 1 WHERE id = p_agent;
  SELECT * INTO t FROM turns WHERE agent_id = p_agent AND state = 'running';
  IF FOUND THEN
    UPDATE events SET status = 2, done_at = p_now, last_error = CASE WHEN last_error = '' THEN 'worker died' ELSE last_error END
      WHERE events.turn_id = t.id AND status = 0 AND attempts >= p_max_attempts;
    IF FOUND AND t.origin = 'person' AND NOT t.replied AND NOT t.cancel_requested AND EXISTS (
        SELECT 1 FROM events WHERE events.turn_id = t.id AND status = 2 AND coalesce((payload->>'addressed')::boolean, true)) THEN
      INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, created_at)
        SELECT p_agent, t.place_id, platform, external_id, t.id, -2, 0, p_apology, p_now FROM places WHERE id = t.place_id
        ON CONFLICT DO NOTHING;
    END IF;
    UPDATE events SET attempts = attempts + 1 WHERE events.turn_id = t.id AND status = 0;
    IF FOUND THEN
      UPDATE turns SET epoch = a.epoch + 1 WHERE id = t.id;
      RETURN QUERY SELECT a.epoch + 1, t.id, t.place_id, true, NULL::timestamptz;
      RETURN;
    END IF;
    UPDATE turns SET state = 'failed', finished_at = p_now WHERE id = t.id;
  END IF;
  SELECT * INTO first FROM events WHERE agent_id = p_agent AND status = 0 ORDER BY seq LIMIT 1;
  IF NOT FOUND THEN
    UPDATE agents SET wake = false WHERE id = p_agent;
    RETURN;
  END IF;
  SELECT array_agg(r.id), least(max(r.ready), min(r.created_at) + p_burst_cap_ms * interval '1 ms'), bool_and(r.burst_ms > 0)
    INTO chosen, ready, alive FROM (
    SELECT id, created_at, burst_ms, created_at + burst_ms * interval '1 ms' AS ready,
           bool_and(place_id = first.place_id AND origin = first.origin AND (kind = first.kind OR (kind <> 'retry' AND first.kind <> 'retry')))
             OVER (ORDER BY seq) AS same
    FROM events WHERE agent_id = p_agent AND status = 0 ORDER BY seq LIMIT p_limit) r WHERE r.same;
  -- A clock that was set back must not keep anybody waiting for longer than a burst may last.
  ready := least(ready, p_now + p_burst_cap_ms * interval '1 ms');
  IF alive AND ready > p_now THEN
    RETURN QUERY SELECT a.epoch + 1, NULL::bigint, NULL::bigint, false, ready; RETURN;
  END IF;
  INSERT INTO turns (agent_id, conversation_id, place_id, epoch, origin, started_at)
    VALUES (p_agent, conversation_of(p_agent, first.place_id), first.place_id, a.epoch + 1, first.origin, p_now) RETURNING * INTO t;
  UPDATE events SET turn_id = t.id, attempts = attempts + 1 WHERE id = ANY (chosen);
  RETURN QUERY SELECT a.epoch + 1, t.id, t.place_id, false, NULL::timestamptz;
END $$;

-- The versions that a prompt built now stands on; read again in the fence of each step.
CREATE FUNCTION versions(p_agent bigint) RETURNS TABLE (epoch bigint, version bigint, policy_version bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT epoch, version, (SELECT coalesce(sum(p.policy_version), 0)::bigint FROM conversations c JOIN places p ON p.id = c.place_id WHERE c.agent_id = p_agent)
  FROM agents WHERE id = p_agent
$$;

-- The fence: the last statement of every step but the last. Locks the agent row for the instant of the commit and
-- raises the version. An older epoch is refused; a changed version or place policy means the prompt was stale.
CREATE FUNCTION commit_step(p_agent bigint, p_epoch bigint, p_version bigint, p_policy_version bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE a agents; v record;
BEGIN
  SELECT * INTO a FROM agents WHERE id = p_agent FOR NO KEY UPDATE;
  IF NOT FOUND OR a.epoch <> p_epoch THEN RETURN 'stale'; END IF;
  SELECT * INTO v FROM versions(p_agent);
  IF a.version <> p_version OR v.policy_version <> p_policy_version THEN RETURN 'changed'; END IF;
  UPDATE agents SET version = version + 1 WHERE id = p_agent;
  RETURN 'ok';
END $$;

-- Opens a step: names the agent and the usable places, bounds the waiting for locks, and holds an erasure of this person back
-- until the step is over. False: they were erased already.
CREATE FUNCTION begin_step(p_agent bigint, p_place bigint, p_lock_timeout text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  -- Made durable by end_step when the person gets to see something of it: the log is flushed in order, earlier steps first.
  PERFORM set_config('lock_timeout', p_lock_timeout, true), set_config('synchronous_commit', 'off', true);
  PERFORM 1 FROM agents WHERE id = p_agent FOR KEY SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM enter(p_agent, p_place);
  RETURN true;
END $$;

-- Closes a step: the fence, the turn's counters, and with p_finish the end of the turn, in one round trip and as its last statement,
-- for nothing may be written after the agent's row is locked. The caller rolls back on any verdict but 'ok'.
-- 'failed' and 'cancelled' are not made from a prompt, so no version matters for them.
CREATE FUNCTION end_step(p_agent bigint, p_turn bigint, p_epoch bigint, p_version bigint, p_policy_version bigint, p_finish text, p_passes integer,
  p_memory_calls integer, p_memory_writes integer, p_tokens integer, p_replied boolean, p_nudged boolean, p_now timestamptz)
RETURNS TABLE (verdict text, more boolean)
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE broken_off CONSTANT boolean := coalesce(p_finish IN ('failed', 'cancelled'), false); cancelled boolean;
BEGIN
  IF broken_off THEN
    more := finish_turn(p_agent, p_turn, p_epoch, p_finish, p_now);
    verdict := CASE WHEN more IS NULL THEN 'stale' ELSE 'ok' END;
  ELSE
    verdict := commit_step(p_agent, p_epoch, p_version, p_policy_version);
  END IF;
  IF verdict <> 'ok' THEN RETURN NEXT; RETURN; END IF;
  UPDATE turns SET step = step + 1, passes = passes + p_passes, memory_calls = memory_calls + p_memory_calls,
      memory_writes = memory_writes + p_memory_writes, tokens = tokens + p_tokens, replied = replied OR p_replied, nudged = nudged OR p_nudged
    WHERE id = p_turn AND state = CASE WHEN broken_off THEN p_finish ELSE 'running' END RETURNING cancel_requested INTO cancelled;
  IF cancelled IS NULL THEN
    verdict := 'stale';
  ELSIF cancelled AND NOT broken_off THEN
    verdict := 'cancelled';
  ELSIF p_finish = 'done' THEN
    more := finish_turn(p_agent, p_turn, p_epoch, p_finish, p_now);
    IF more IS NULL THEN verdict := 'stale'; END IF;
  END IF;
  IF p_replied OR p_finish IS NOT NULL THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  RETURN NEXT;
END $$;

-- A clean exit without an end (the model is away, the process stops): the attempt does not count as a crash.
CREATE FUNCTION release_turn(p_agent bigint, p_turn bigint, p_epoch bigint, p_error text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  PERFORM 1 FROM agents WHERE id = p_agent AND epoch = p_epoch FOR NO KEY UPDATE;
  IF FOUND THEN
    UPDATE events SET attempts = greatest(attempts - 1, 0), last_error = p_error WHERE turn_id = p_turn AND status = 0;
  END IF;
END $$;

-- Where a message of a platform stands: in events that wait (or died), in messages, or nowhere any more. One row an event or message.
CREATE FUNCTION locate(p_platform text, p_realm text, p_external text, p_ids text[])
RETURNS TABLE (agent_id bigint, place_id bigint, event_id bigint, message_id bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH here AS (SELECT id FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external)
  SELECT e.agent_id, e.place_id, e.id, NULL::bigint FROM events e JOIN here ON e.place_id = here.id
    WHERE e.payload->>'message_id' = ANY (p_ids) AND e.status IN (0, 2) AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.event_id = e.id)
  UNION ALL
  SELECT m.agent_id, m.place_id, m.event_id, m.id FROM messages m JOIN here ON m.place_id = here.id WHERE m.platform_id = ANY (p_ids)
$$;

-- Ends a turn inside its last step, under the epoch; a turn that is done has raised the version in commit_step just before.
-- Returns whether more waits; if not, the wake flag is down.
-- Null: stale epoch, nothing was done.
CREATE FUNCTION finish_turn(p_agent bigint, p_turn bigint, p_epoch bigint, p_state text, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE more boolean;
BEGIN
  PERFORM 1 FROM agents WHERE id = p_agent AND epoch = p_epoch FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  -- What was said stands in recall storage now; a second copy would have to be erased apart. A dead letter keeps it for its replay.
  UPDATE events SET status = CASE p_state WHEN 'done' THEN 1 WHEN 'cancelled' THEN 3 ELSE 2 END, done_at = p_now,
      payload = CASE WHEN p_state = 'failed' THEN payload ELSE payload - 'text' - 'quotes' - 'purpose' END
    WHERE turn_id = p_turn AND status = 0;
  UPDATE turns SET state = p_state, finished_at = p_now WHERE id = p_turn AND state = 'running';
  more := EXISTS (SELECT 1 FROM events WHERE agent_id = p_agent AND status = 0);
  UPDATE agents SET wake = more, version = version + (p_state <> 'done')::integer WHERE id = p_agent;
  RETURN more;
END $$;

-- /stop: what waits in a place is cancelled, the turn running there is asked to end and its unsent replies are withdrawn.
CREATE FUNCTION cancel_work(p_agent bigint, p_place bigint, p_now timestamptz) RETURNS TABLE (cancelled integer, running boolean)
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE n integer; r integer;
BEGIN
  PERFORM 1 FROM agents WHERE id = p_agent FOR NO KEY UPDATE;
  UPDATE events SET status = 3, done_at = p_now WHERE agent_id = p_agent AND place_id = p_place AND status = 0 AND origin = 'person' AND turn_id IS NULL;
  GET DIAGNOSTICS n = ROW_COUNT;
  UPDATE turns SET cancel_requested = true WHERE agent_id = p_agent AND place_id = p_place AND state = 'running';
  GET DIAGNOSTICS r = ROW_COUNT;
  UPDATE outbox o SET state = 'withdrawn' FROM turns t
    WHERE o.turn_id = t.id AND t.agent_id = p_agent AND t.place_id = p_place AND t.state = 'running' AND o.state = 'waiting';
  PERFORM pg_notify('keepsake_stop', p_agent::text);
  RETURN QUERY SELECT n, r > 0;
END $$;

-- Sweeper: agents whose flag is up without a job (a job that ended for good), so that they are woken again.
CREATE FUNCTION unwoken_agents(p_limit integer) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER AS $$
  SELECT id FROM agents a WHERE wake AND NOT EXISTS (
    SELECT 1 FROM procrastinate.procrastinate_jobs j WHERE j.lock = 'agent:' || a.id AND j.status IN ('todo', 'doing'))
  ORDER BY id LIMIT p_limit
$$;

-- Dead letters: ids and error classes, for the operator.
CREATE FUNCTION dead_letters(p_limit integer) RETURNS TABLE (event_id bigint, agent_id bigint, kind text, source text, attempts integer,
                                                             last_error text, created_at timestamptz, done_at timestamptz)
LANGUAGE sql SECURITY DEFINER AS $$
  SELECT id, agent_id, kind, source, attempts, last_error, created_at, done_at FROM events WHERE status = 2 ORDER BY id LIMIT p_limit
$$;

-- Puts one dead letter, or all with null, back in the inbox and wakes the agents. Returns how many.
CREATE FUNCTION replay_dead(p_event bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE e record; n bigint := 0; was boolean;
BEGIN
  FOR e IN SELECT id, events.agent_id AS agent FROM events WHERE status = 2 AND (p_event IS NULL OR id = p_event) ORDER BY events.agent_id, id LOOP
    SELECT wake INTO was FROM agents WHERE id = e.agent FOR NO KEY UPDATE;
    UPDATE events SET status = 0, attempts = 0, last_error = '', done_at = NULL, turn_id = NULL WHERE id = e.id;
    UPDATE agents SET wake = true WHERE id = e.agent;
    IF NOT was THEN PERFORM defer_wake(e.agent); END IF;
    n := n + 1;
  END LOOP;
  RETURN n;
END $$;

-- Outbox ----------------------------------------------------------------------------------------------

-- Takes the head of each channel of a platform that has something to send, at most p_limit; a head that has been
-- "sending" since before p_doubtful, or whose not_before a sender set when it did not learn the outcome, is taken again, to be
-- looked up before it is sent.
-- p_channels null: all channels of the platform.
CREATE FUNCTION claim_outbox(p_platform text, p_channels text[], p_limit integer, p_now timestamptz, p_doubtful timestamptz)
RETURNS TABLE (outbox_id bigint, agent_id bigint, place_id bigint, doubtful boolean)
LANGUAGE sql SECURITY DEFINER AS $$
  WITH heads AS (
    SELECT DISTINCT ON (channel) id FROM outbox
    WHERE platform = p_platform AND state IN ('waiting', 'sending') AND (p_channels IS NULL OR channel = ANY (p_channels))
    ORDER BY channel, id),
  taken AS (
    SELECT o.id, o.state AS old_state FROM outbox o JOIN heads USING (id)
    WHERE (o.state = 'waiting' AND coalesce(o.not_before, p_now) <= p_now) OR (o.state = 'sending' AND (o.sending_since < p_doubtful OR o.not_before <= p_now))
    ORDER BY o.id LIMIT p_limit FOR UPDATE OF o SKIP LOCKED)
  UPDATE outbox o SET state = 'sending', sending_since = p_now, not_before = NULL, attempts = attempts + 1
    FROM taken WHERE o.id = taken.id
  RETURNING o.id, o.agent_id, o.place_id, taken.old_state = 'sending'
$$;

-- Budgets ---------------------------------------------------------------------------------------------

-- Takes an estimate off the day's budgets before a model call, of the person's first and of the whole bot's, or takes nothing.
-- A limit of 0 is none. Returns whose budget is spent: 'person', 'bot', or '' when the call may be made.
CREATE FUNCTION reserve_spending(p_agent bigint, p_day date, p_tokens bigint, p_micros bigint,
  p_person_tokens bigint, p_person_micros bigint, p_bot_tokens bigint, p_bot_micros bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE own spending; every spending_total;
BEGIN
  INSERT INTO spending (agent_id, day) VALUES (p_agent, p_day) ON CONFLICT DO NOTHING;
  INSERT INTO spending_total (day) VALUES (p_day) ON CONFLICT DO NOTHING;
  SELECT * INTO own FROM spending WHERE agent_id = p_agent AND day = p_day FOR UPDATE;
  IF (p_person_tokens > 0 AND own.tokens + p_tokens > p_person_tokens) OR (p_person_micros > 0 AND own.micros + p_micros > p_person_micros) THEN
    RETURN 'person';
  END IF;
  SELECT * INTO every FROM spending_total WHERE day = p_day FOR UPDATE;
  IF (p_bot_tokens > 0 AND every.tokens + p_tokens > p_bot_tokens) OR (p_bot_micros > 0 AND every.micros + p_micros > p_bot_micros) THEN
    RETURN 'bot';
  END IF;
  UPDATE spending SET tokens = tokens + p_tokens, micros = micros + p_micros WHERE agent_id = p_agent AND day = p_day;
  UPDATE spending_total SET tokens = tokens + p_tokens, micros = micros + p_micros WHERE day = p_day;
  RETURN '';
END $$;

-- Corrects an estimate by what the call really cost; negative numbers give back.
CREATE FUNCTION settle_spending(p_agent bigint, p_day date, p_tokens bigint, p_micros bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER AS $$
  UPDATE spending SET tokens = greatest(tokens + p_tokens, 0), micros = greatest(micros + p_micros, 0) WHERE agent_id = p_agent AND day = p_day;
  UPDATE spending_total SET tokens = greatest(tokens + p_tokens, 0), micros = greatest(micros + p_micros, 0) WHERE day = p_day;
$$;

-- True once a day and person: whoever gets it tells them that the budget is spent.
CREATE FUNCTION tell_spent(p_agent bigint, p_day date) RETURNS boolean
LANGUAGE sql SECURITY DEFINER AS $$
  WITH first AS (UPDATE spending SET told = true WHERE agent_id = p_agent AND day = p_day AND NOT told RETURNING 1) SELECT EXISTS (SELECT FROM first)
$$;

-- The operator starts a day's budget anew, of one person or with null of everybody and the whole bot. Returns the people concerned.
CREATE FUNCTION reset_spending(p_agent bigint, p_day date) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE n bigint;
BEGIN
  DELETE FROM spending WHERE day = p_day AND (p_agent IS NULL OR agent_id = p_agent);
  GET DIAGNOSTICS n = ROW_COUNT;
  IF p_agent IS NULL THEN DELETE FROM spending_total WHERE day = p_day; END IF;
  RETURN n;
END $$;

-- Model calls by person, purpose and model since a time, for `bot usage`; ids and sums only.
CREATE FUNCTION usage_since(p_since timestamptz) RETURNS TABLE (agent_id bigint, purpose text, model text, calls bigint, prompt_tokens bigint,
                                                                cached_tokens bigint, completion_tokens bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT agent_id, purpose, model, count(*), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens) FROM usage
  WHERE at >= p_since GROUP BY 1, 2, 3 ORDER BY sum(prompt_tokens) DESC, 1
$$;

-- Timers ----------------------------------------------------------------------------------------------

-- The due timers, locked until the transaction ends; the caller makes events of them in the same transaction.
CREATE FUNCTION due_timers(p_now timestamptz, p_limit integer) RETURNS TABLE (timer_id bigint, agent_id bigint, place_id bigint, due_at timestamptz)
LANGUAGE sql SECURITY DEFINER AS $$
  SELECT id, agent_id, place_id, due_at FROM timers WHERE due_at <= p_now ORDER BY due_at LIMIT p_limit FOR UPDATE SKIP LOCKED
$$;

-- Vectors ---------------------------------------------------------------------------------------------

CREATE FUNCTION unembedded_agents(p_limit integer) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER AS $$ SELECT DISTINCT agent_id FROM unembedded LIMIT p_limit $$;

-- Makes a model known, with an index of its own; a change of model queues every row without its vector.
CREATE FUNCTION use_embedding_model(p_name text, p_dims integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE model embedding_models;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('keepsake.embedding_models'));
  SELECT * INTO model FROM embedding_models WHERE name = p_name;
  IF NOT FOUND THEN
    INSERT INTO embedding_models (name, dims) VALUES (p_name, p_dims) RETURNING * INTO model;
    EXECUTE format('CREATE INDEX %I ON embeddings USING hnsw ((embedding::halfvec(%s)) halfvec_cosine_ops) WHERE model_id = %s',
                   'embeddings_hnsw_' || model.id, p_dims, model.id);
  ELSIF model.dims <> p_dims THEN
    RAISE EXCEPTION 'embedding model % has % dimensions, not %', p_name, model.dims, p_dims USING ERRCODE = 'KS002';
  END IF;
  INSERT INTO unembedded (agent_id, message_id)
    SELECT m.agent_id, m.id FROM messages m WHERE m.searchable
      AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.message_id = m.id AND e.model_id = model.id) ON CONFLICT DO NOTHING;
  INSERT INTO unembedded (agent_id, passage_id)
    SELECT p.agent_id, p.id FROM passages p
      WHERE NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.passage_id = p.id AND e.model_id = model.id) ON CONFLICT DO NOTHING;
  RETURN model.id;
END $$;

-- Erasure ---------------------------------------------------------------------------------------------

-- Removes a person: every row of their agent (all personal tables hang on it by cascade), what other agents hold of
-- their quoted words, and keeps keyed hashes of their event keys for a week. Returns counts, by table.
CREATE FUNCTION erase_agent(p_agent bigint, p_actor text, p_hash_key bytea, p_now timestamptz) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE counts jsonb := '{}'; t text; n bigint; own CONSTANT bigint[] := ARRAY(SELECT id FROM places WHERE owner_id = p_agent);
BEGIN
  PERFORM 1 FROM agents WHERE id = p_agent FOR UPDATE;
  INSERT INTO erased_events (hash, until)
    SELECT sha256(p_hash_key || convert_to(source || E'\x1f' || idem, 'UTF8')), p_now + interval '7 days'
    FROM events WHERE agent_id = p_agent ON CONFLICT DO NOTHING;
  DELETE FROM messages m USING identities i WHERE i.agent_id = p_agent AND m.kind = 'quote' AND m.agent_id <> p_agent
    AND m.author_id = i.platform || ':' || i.realm || ':' || i.user_id;
  GET DIAGNOSTICS n = ROW_COUNT;
  counts := counts || jsonb_build_object('quotes', n);
  UPDATE events e SET payload = jsonb_set(payload, '{quotes}', (
      SELECT coalesce(jsonb_agg(q), '[]') FROM jsonb_array_elements(e.payload->'quotes') q
      WHERE NOT q->>'author_id' = ANY (ARRAY(SELECT i.platform || ':' || i.realm || ':' || i.user_id FROM identities i WHERE i.agent_id = p_agent))))
    WHERE e.agent_id <> p_agent AND e.status IN (0, 2) AND jsonb_typeof(e.payload->'quotes') = 'array' AND EXISTS (
      SELECT 1 FROM jsonb_array_elements(e.payload->'quotes') q JOIN identities i ON q->>'author_id' = i.platform || ':' || i.realm || ':' || i.user_id
      WHERE i.agent_id = p_agent);
  FOR t IN SELECT c.table_name FROM information_schema.columns c JOIN information_schema.tables i USING (table_schema, table_name)
           WHERE c.table_schema = 'keepsake' AND c.column_name = 'agent_id' AND i.table_type = 'BASE TABLE' ORDER BY 1 LOOP
    EXECUTE format('SELECT count(*) FROM %I WHERE agent_id = $1', t) INTO n USING p_agent;
    counts := counts || jsonb_build_object(t, n);
  END LOOP;
  DELETE FROM agents WHERE id = p_agent;
  -- Their direct messages name them too.
  DELETE FROM places p WHERE id = ANY (own) AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.place_id = p.id);
  GET DIAGNOSTICS n = ROW_COUNT;
  counts := counts || jsonb_build_object('places', n);
  INSERT INTO erasures (at, actor, counts) VALUES (p_now, p_actor, counts);
  RETURN counts;
END $$;

-- What is left of an agent anywhere: the proof after an erasure. All zero, or the erasure failed.
CREATE FUNCTION residue(p_agent bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER STABLE AS $$
DECLARE counts jsonb := '{}'; t text; n bigint;
BEGIN
  FOR t IN SELECT c.table_name FROM information_schema.columns c JOIN information_schema.tables i USING (table_schema, table_name)
           WHERE c.table_schema = 'keepsake' AND c.column_name = 'agent_id' AND i.table_type = 'BASE TABLE' ORDER BY 1 LOOP
    EXECUTE format('SELECT count(*) FROM %I WHERE agent_id = $1', t) INTO n USING p_agent;
    counts := counts || jsonb_build_object(t, n);
  END LOOP;
  RETURN counts;
END $$;

-- Drops the hashes whose week is over. Returns how many.
CREATE FUNCTION purge_erased(p_now timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER AS $$
  WITH gone AS (DELETE FROM erased_events WHERE until <= p_now RETURNING 1) SELECT count(*) FROM gone
$$;

-- The newest message that was taken in of each channel of a platform, from where to catch up after an absence.
CREATE FUNCTION newest_messages(p_platform text, p_since timestamptz) RETURNS TABLE (channel text, workspace text, message_id text)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT DISTINCT ON (p.id) p.external_id, p.workspace, e.payload->>'message_id'
  FROM events e JOIN places p ON p.id = e.place_id
  WHERE p.platform = p_platform AND e.created_at > p_since AND e.payload->>'message_id' IS NOT NULL
  ORDER BY p.id, length(e.payload->>'message_id') DESC, e.payload->>'message_id' DESC
$$;

-- The agent of a person, without making one.
CREATE FUNCTION known_agent(p_platform text, p_realm text, p_user text) RETURNS bigint
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT coalesce(merged_into, agent_id) FROM identities WHERE platform = p_platform AND realm = p_realm AND user_id = p_user
$$;

CREATE FUNCTION people() RETURNS TABLE (agent_id bigint, platform text, realm text, user_id text, created_at timestamptz)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT coalesce(merged_into, agent_id), platform, realm, user_id, created_at FROM identities ORDER BY created_at, user_id
$$;
