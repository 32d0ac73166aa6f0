-- The way in, and what waits or has died there.
--
-- The agent row is locked FOR NO KEY UPDATE throughout: its holders exclude each other, but not the key locks that every insert
-- with a foreign key to agents takes. FOR UPDATE would deadlock two transactions that both inserted before they asked for it.

-- All of the way in, in one statement: the person's agent, the place, the conversation, the event. What it makes for an event that is not
-- stored is taken back: a late redelivery must not bring an erased person's agent back.
CREATE FUNCTION take_in(p_platform text, p_realm text, p_user text, p_name text, p_locale text, p_zone text, p_workspace text, p_external text,
                        p_place_kind text, p_place_name text, p_parent text, p_kind text, p_origin text, p_idem text, p_payload jsonb, p_burst_ms integer,
                        p_now timestamptz, p_erased bytea, p_closed boolean)
RETURNS TABLE (agent_id bigint, place_id bigint, event_id bigint)
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  agent_id := agent_of(p_platform, p_realm, p_user, p_name, p_locale, p_zone);
  place_id := place_of(p_platform, p_realm, p_workspace, p_external, p_place_kind, p_place_name, p_parent, agent_id, p_closed);
  PERFORM conversation_of(agent_id, place_id);
  event_id := accept_event(agent_id, place_id, p_kind, p_origin, p_platform, p_idem, p_payload, p_burst_ms, p_now, p_erased);
  IF event_id IS NULL THEN RAISE EXCEPTION USING ERRCODE = 'KS003'; END IF;
  RETURN NEXT;
EXCEPTION WHEN SQLSTATE 'KS003' THEN
  RETURN NEXT;
END $$;

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

-- Puts an agent's wake-up into the queue, to be seen when the caller's transaction commits. Procrastinate's own function, called here so that
-- taking an event in is one round trip. The caller keeps the invariant: the wake flag is up exactly while one job waits or runs.
CREATE FUNCTION defer_wake(p_agent bigint) RETURNS bigint LANGUAGE sql SET search_path = procrastinate, public, pg_temp AS $$
  SELECT unnest(procrastinate_defer_jobs_v1(ARRAY[
    ROW('default', 'wake', 0, 'agent:' || p_agent, NULL, jsonb_build_object('agent', p_agent), NULL)::procrastinate_job_to_defer_v1]))
$$;

-- Takes the waiting wake-ups of agents out of the queue. Procrastinate's own triggers name its tables without their schema. Returns how many.
CREATE FUNCTION drop_wakes(p_agents bigint[]) RETURNS bigint LANGUAGE sql SET search_path = procrastinate, public, pg_temp AS $$
  WITH gone AS (DELETE FROM procrastinate_jobs WHERE status = 'todo' AND lock = ANY (ARRAY(SELECT 'agent:' || unnest(p_agents))) RETURNING 1)
  SELECT count(*) FROM gone
$$;

-- Sweeper: agents whose flag is up without a job (a job that ended for good), so that they are woken again.
CREATE FUNCTION unwoken_agents(p_limit integer) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER AS $$
  SELECT id FROM agents a WHERE wake AND NOT EXISTS (
    SELECT 1 FROM procrastinate.procrastinate_jobs j WHERE j.lock = 'agent:' || a.id AND j.status IN ('todo', 'doing'))
  ORDER BY id LIMIT p_limit
$$;

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

-- The turns that came to nothing with a reminder in them that was not said, since a time, oldest first.
CREATE FUNCTION dead_reminders(p_since timestamptz, p_limit integer) RETURNS TABLE (agent_id bigint, place_id bigint, turn_id bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT DISTINCT e.agent_id, e.place_id, e.turn_id FROM events e
  WHERE e.status = 2 AND e.kind = 'timer' AND e.payload->>'timer' = 'reminder' AND e.turn_id IS NOT NULL
    AND e.done_at > p_since
  ORDER BY e.turn_id LIMIT p_limit
$$;

-- How many events of a kind came in of a person since a time, in one channel or (null) anywhere on that platform.
CREATE FUNCTION taken_of(p_platform text, p_realm text, p_user text, p_kind text, p_since timestamptz, p_external text) RETURNS bigint
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT count(*) FROM events e JOIN places p ON p.id = e.place_id
  WHERE e.agent_id = known_agent(p_platform, p_realm, p_user) AND e.created_at >= p_since AND e.kind = p_kind AND e.source = p_platform
    AND p.realm = p_realm AND (p_external IS NULL OR p.external_id = p_external)
$$;

-- Every channel of a platform that the bot knows, those with the newest messages first; ids alone. The newest message that is kept of each
-- (empty: none) is found by an index, whatever the age of the channel.
CREATE FUNCTION newest_messages(p_platform text) RETURNS TABLE (channel text, workspace text, message_id text)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT p.external_id, p.workspace, coalesce(n.id, '') FROM places p LEFT JOIN LATERAL (
    SELECT m.platform_id AS id FROM messages m WHERE m.place_id = p.id AND m.platform_id IS NOT NULL AND m.kind <> 'quote'
    ORDER BY m.platform_id DESC LIMIT 1) n ON true
  WHERE p.platform = p_platform
  ORDER BY length(n.id) DESC NULLS LAST, n.id DESC, p.id DESC
$$;

-- Up to which message everything on a platform was dealt with; see the table `heard`.
CREATE FUNCTION heard_until(p_platform text) RETURNS text
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT message_id FROM heard WHERE platform = p_platform
$$;

-- Notes how far that is. It never goes back; ids are numbers that grow with time.
CREATE FUNCTION hear_until(p_platform text, p_message text) RETURNS void
LANGUAGE sql SECURITY DEFINER AS $$
  INSERT INTO heard (platform, message_id) VALUES (p_platform, p_message)
  ON CONFLICT (platform) DO UPDATE SET message_id = excluded.message_id
    WHERE (length(excluded.message_id), excluded.message_id) > (length(heard.message_id), heard.message_id)
$$;
