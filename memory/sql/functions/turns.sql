-- A turn, from its claim to its end, in steps that are committed under a fence.
--
-- Claims and steps are flushed when they commit, like everything else. Left to the log writer, a crash of the server would take back epochs,
-- versions and numbers that running turns still hold, and give them out again.

-- What waits and belongs into one turn: the longest run of one place and one origin, the oldest first.
CREATE FUNCTION waiting_run(p_agent bigint, p_limit integer) RETURNS SETOF events
LANGUAGE sql STABLE AS $$
  WITH waiting AS MATERIALIZED (SELECT * FROM events WHERE agent_id = p_agent AND status = 0 ORDER BY seq LIMIT p_limit),
  first AS MATERIALIZED (SELECT * FROM waiting ORDER BY seq LIMIT 1)
  SELECT w.* FROM waiting w, first WHERE NOT EXISTS (
    SELECT FROM waiting o WHERE o.seq <= w.seq
      AND (o.place_id, o.origin, o.kind = 'retry') IS DISTINCT FROM (first.place_id, first.origin, first.kind = 'retry'))
$$;

-- Takes an agent's turn: raises the epoch, goes on with the unfinished turn or opens one for the longest run of
-- waiting events of one place and one origin. No row: nothing waits, and the wake flag is down.
-- A turn that was opened and that nobody has claimed yet (its epoch is 0) takes along what has come in since.
-- wait_until set: a burst is being waited for, at most p_burst_cap_ms after its first message; ask again then.
-- A turn whose events were taken p_max_attempts times without a clean exit is poison: its events become dead
-- letters, the person gets p_apology, in their language, once, and the next run is looked at.
CREATE FUNCTION claim_turn(p_agent bigint, p_now timestamptz, p_limit integer, p_max_attempts integer, p_burst_cap_ms integer, p_apology jsonb)
RETURNS TABLE (epoch bigint, turn_id bigint, place_id bigint, resumed boolean, wait_until timestamptz)
LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE a agents; t turns; chosen bigint[]; first events; run_place bigint; ready timestamptz; alive boolean;
BEGIN
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
        SELECT p_agent, t.place_id, platform, external_id, t.id, -2, 0, in_their_language(a.locale, p_apology), p_now FROM places WHERE id = t.place_id
        ON CONFLICT DO NOTHING;
    END IF;
    UPDATE events SET attempts = attempts + 1 WHERE events.turn_id = t.id AND status = 0;
    IF FOUND THEN
      IF t.epoch = 0 AND NOT t.cancel_requested THEN
        UPDATE events SET turn_id = t.id, attempts = attempts + 1 WHERE turn_id IS NULL AND id IN (SELECT r.id FROM waiting_run(p_agent, p_limit) r);
      END IF;
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
  SELECT array_agg(id), least(max(created_at + burst_ms * interval '1 ms'), min(created_at) + p_burst_cap_ms * interval '1 ms'), bool_and(burst_ms > 0)
    INTO chosen, ready, alive FROM waiting_run(p_agent, p_limit);
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

-- Opens a step: names the agent and the usable places, bounds the waiting for locks, and holds an erasure of this person back
-- until the step is over. False: they were erased already.
CREATE FUNCTION begin_step(p_agent bigint, p_place bigint, p_lock_timeout text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  PERFORM set_config('lock_timeout', p_lock_timeout, true);
  PERFORM 1 FROM agents WHERE id = p_agent FOR KEY SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM enter(p_agent, p_place);
  RETURN true;
END $$;

-- Closes a step: the fence, the turn's counters, and with p_finish the end of the turn, in one round trip and as its last statement,
-- for nothing may be written after the agent's row is locked. The caller rolls back on any verdict but 'ok'.
-- 'stale': another claim runs the turn, or the database stands before what the caller believes to be committed; claim again.
-- 'changed': memory or place policy is not what the prompt was built from. 'failed' and 'cancelled' are not made from a prompt.
CREATE FUNCTION end_step(p_agent bigint, p_turn bigint, p_epoch bigint, p_step integer, p_version bigint, p_policy_version bigint, p_finish text,
  p_passes integer, p_memory_calls integer, p_memory_writes integer, p_tokens integer, p_replied boolean, p_nudged boolean, p_now timestamptz)
RETURNS TABLE (verdict text, more boolean)
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE a agents; t turns; broken_off CONSTANT boolean := coalesce(p_finish IN ('failed', 'cancelled'), false);
BEGIN
  SELECT * INTO a FROM agents WHERE id = p_agent FOR NO KEY UPDATE;
  SELECT * INTO t FROM turns WHERE id = p_turn AND agent_id = p_agent AND state = 'running' FOR NO KEY UPDATE;
  IF a.epoch IS DISTINCT FROM p_epoch OR t.step IS DISTINCT FROM p_step OR a.version < p_version THEN
    verdict := 'stale';
  ELSIF broken_off THEN
    verdict := 'ok';
  ELSIF a.version > p_version OR p_policy_version <> (SELECT v.policy_version FROM versions(p_agent) v) THEN
    verdict := 'changed';
  ELSIF t.cancel_requested THEN
    verdict := 'cancelled';
  ELSE
    verdict := 'ok';
    UPDATE agents SET version = version + 1 WHERE id = p_agent;
  END IF;
  IF verdict = 'ok' THEN
    UPDATE turns SET step = step + 1, passes = passes + p_passes, memory_calls = memory_calls + p_memory_calls,
      memory_writes = memory_writes + p_memory_writes, tokens = tokens + p_tokens, replied = replied OR p_replied, nudged = nudged OR p_nudged
      WHERE id = p_turn;
    IF p_finish IS NOT NULL THEN more := finish_turn(p_agent, p_turn, p_epoch, p_finish, p_now); END IF;
  END IF;
  RETURN NEXT;
END $$;

-- Ends a turn inside its last step, under the epoch; a turn that is done has raised the version in end_step just before.
-- Returns whether more waits; if not, the wake flag is down.
-- Null: stale epoch, nothing was done. Raises KS012, and with it takes the step back, where an event would be done that does not stand in
-- recall storage: the only copy of what somebody said would go.
CREATE FUNCTION finish_turn(p_agent bigint, p_turn bigint, p_epoch bigint, p_state text, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE more boolean;
BEGIN
  PERFORM 1 FROM agents WHERE id = p_agent AND epoch = p_epoch FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF p_state = 'done' AND EXISTS (
      SELECT FROM events e WHERE e.turn_id = p_turn AND e.status = 0 AND NOT e.payload ? 'forgotten'
        AND NOT EXISTS (SELECT FROM messages m WHERE m.event_id = e.id)) THEN
    RAISE EXCEPTION 'turn % has events that do not stand in recall storage', p_turn USING ERRCODE = 'KS012';
  END IF;
  UPDATE events SET status = CASE p_state WHEN 'done' THEN 1 WHEN 'cancelled' THEN 3 ELSE 2 END, done_at = p_now
    WHERE turn_id = p_turn AND status = 0;
  UPDATE turns SET state = p_state, finished_at = p_now WHERE id = p_turn AND state = 'running';
  more := EXISTS (SELECT 1 FROM events WHERE agent_id = p_agent AND status = 0);
  UPDATE agents SET wake = more, version = version + (p_state <> 'done')::integer WHERE id = p_agent;
  RETURN more;
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

-- Those whose oldest message has waited since before p_before for a turn to begin (every worker has its hands full, or there is none) are
-- told that it takes longer, as those are whose turn runs. Their turn is opened for it, and with it they are told once: whoever gets to them
-- goes on with it. Returns how many, at most p_limit at a time.
CREATE FUNCTION tell_waiting(p_before timestamptz, p_now timestamptz, p_limit integer, p_lines jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE w record; opened bigint; told bigint := 0;
BEGIN
  FOR w IN
    SELECT a.id AS agent, a.locale, e.id AS event, e.place_id FROM agents a
      JOIN (SELECT DISTINCT ON (agent_id) * FROM events WHERE status = 0 ORDER BY agent_id, seq) e ON e.agent_id = a.id
      WHERE e.turn_id IS NULL AND e.created_at < p_before AND e.origin = 'person' AND coalesce((e.payload->>'addressed')::boolean, true)
      ORDER BY a.id LIMIT p_limit FOR NO KEY UPDATE OF a SKIP LOCKED
  LOOP
    -- Between the look and the lock somebody may have got to them, or they may have taken it back.
    CONTINUE WHEN EXISTS (SELECT FROM turns WHERE agent_id = w.agent AND state = 'running')
      OR NOT EXISTS (SELECT FROM events WHERE agent_id = w.agent AND id = w.event AND status = 0 AND turn_id IS NULL);
    INSERT INTO turns (agent_id, conversation_id, place_id, epoch, origin, started_at)
      VALUES (w.agent, conversation_of(w.agent, w.place_id), w.place_id, 0, 'person', p_now) RETURNING id INTO opened;
    UPDATE events SET turn_id = opened WHERE agent_id = w.agent AND id = w.event;
    INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, created_at)
      SELECT w.agent, id, platform, external_id, opened, -1, 0, in_their_language(w.locale, p_lines), p_now FROM places WHERE id = w.place_id;
    told := told + 1;
  END LOOP;
  IF told > 0 THEN PERFORM pg_notify('keepsake_outbox', ''); END IF;
  RETURN told;
END $$;
