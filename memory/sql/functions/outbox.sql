-- The way out.

-- Opens a growing reply. Nothing when something else of the agent's still has to go out in that channel first: order wins.
CREATE FUNCTION open_stream(p_agent bigint, p_place bigint, p_turn bigint, p_epoch bigint, p_body text, p_reply_to text, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE made bigint;
BEGIN
  PERFORM 1 FROM agents WHERE id = p_agent AND epoch = p_epoch FOR NO KEY UPDATE;
  IF NOT FOUND OR NOT EXISTS (SELECT 1 FROM turns WHERE id = p_turn AND agent_id = p_agent AND state = 'running' AND NOT cancel_requested) THEN RETURN NULL; END IF;
  IF EXISTS (SELECT 1 FROM outbox o JOIN places p ON p.platform = o.platform AND p.external_id = o.channel
             WHERE p.id = p_place AND o.agent_id = p_agent AND o.state IN ('waiting', 'sending')) THEN RETURN NULL; END IF;
  -- Under steps that no turn reaches, until the turn takes it over; the engine's own lines are -1 and -2.
  INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, reply_to, state, streamed, sending_since, attempts, created_at)
    SELECT p_agent, p_place, p.platform, p.external_id, p_turn, -3, (SELECT coalesce(max(part), -1) + 1 FROM outbox WHERE turn_id = p_turn AND step = -3),
      p_body, p_reply_to, 'streaming', true, p_now, 1, p_now FROM places p WHERE p.id = p_place RETURNING id INTO made;
  RETURN made;
END $$;

CREATE FUNCTION claim_outbox(p_platform text, p_channels text[], p_limit integer, p_now timestamptz, p_doubtful timestamptz, p_stopped text DEFAULT '',
  p_sender bigint DEFAULT NULL)
RETURNS TABLE (outbox_id bigint, agent_id bigint, place_id bigint, doubtful boolean)
LANGUAGE sql SECURITY DEFINER SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  WITH heads AS MATERIALIZED (
    SELECT DISTINCT ON (channel) o.id, o.state, o.not_before, o.sending_since FROM outbox o
    WHERE platform = p_platform AND o.state IN ('waiting', 'sending', 'streaming') AND (p_channels IS NULL OR channel = ANY (p_channels))
      AND (o.state <> 'streaming' OR NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = o.turn_id AND t.state = 'running'))
    ORDER BY channel, o.id),
  ready AS MATERIALIZED (
    SELECT h.id FROM heads h
    WHERE (h.state = 'waiting' AND coalesce(h.not_before, p_now) <= p_now) OR h.state = 'streaming'
       OR (h.state = 'sending' AND (h.sending_since < p_doubtful OR h.not_before <= p_now))
    ORDER BY h.id LIMIT p_limit),
  taken AS (
    SELECT o.id, o.state AS old_state FROM outbox o
    WHERE o.id = ANY (ARRAY(SELECT ready.id FROM ready))
      AND ((o.state = 'waiting' AND coalesce(o.not_before, p_now) <= p_now) OR o.state = 'streaming'
        OR (o.state = 'sending' AND (o.sending_since < p_doubtful OR o.not_before <= p_now)))
    FOR UPDATE OF o SKIP LOCKED)
  UPDATE outbox o SET state = 'sending', sending_since = p_now, sender = p_sender, not_before = NULL, attempts = attempts + 1,
      body = CASE taken.old_state WHEN 'streaming' THEN body || p_stopped ELSE body END
    FROM taken WHERE o.id = taken.id
  RETURNING o.id, o.agent_id, o.place_id, taken.old_state IN ('sending', 'streaming')
$$;

-- What is marked as being sent and nobody is sending is doubtful, and looked up at once: what a dead process left behind, where the only
-- process there is has just begun, or with p_since one look for something to send whose answer was lost on its way.
CREATE FUNCTION doubt_sending(p_now timestamptz, p_platform text DEFAULT NULL, p_since timestamptz DEFAULT NULL) RETURNS bigint
LANGUAGE sql SECURITY DEFINER AS $$
  WITH left_behind AS (
    UPDATE outbox SET not_before = p_now WHERE state = 'sending' AND (p_platform IS NULL OR platform = p_platform)
      AND (p_since IS NULL OR sending_since = p_since) RETURNING 1)
  SELECT count(*) FROM left_behind
$$;

-- A timed message whose channel is gone: its waiting part goes to the person's own direct message with the same account, with `p_note`,
-- in their language, before it, and so do the timers that are still set there. Null: there is none, or it was no timed turn elsewhere; then it has failed.
CREATE FUNCTION redirect_timed(p_outbox bigint, p_note jsonb, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE o outbox; here places; target places; note text; made bigint;
BEGIN
  SELECT b.* INTO o FROM outbox b JOIN turns t ON t.id = b.turn_id WHERE b.id = p_outbox AND t.origin = 'timed';
  SELECT * INTO here FROM places WHERE id = o.place_id;
  IF o.id IS NULL OR here.kind = 'direct' THEN RETURN NULL; END IF;
  SELECT * INTO target FROM places WHERE id = direct_of(o.agent_id, o.place_id);
  IF target.id IS NULL THEN RETURN NULL; END IF;
  SELECT in_their_language(locale, p_note) || E'\n' INTO note FROM agents WHERE id = o.agent_id;
  INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, created_at, buttons)
    VALUES (o.agent_id, target.id, target.platform, target.external_id, o.turn_id, -1000 - o.step, o.part, note || o.body, p_now, o.buttons)
    ON CONFLICT DO NOTHING RETURNING id INTO made;
  UPDATE timers SET place_id = target.id WHERE agent_id = o.agent_id AND place_id = o.place_id AND due_at IS NOT NULL;
  PERFORM pg_notify('keepsake_outbox', target.platform);
  RETURN made;
END $$;

-- What was being sent before p_looked by a process that is not among those that live is doubtful, and looked up at once.
CREATE FUNCTION doubt_sending_but_of(p_living bigint[], p_looked timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER AS $$
  WITH left_behind AS (
    UPDATE outbox SET not_before = p_looked
    WHERE state = 'sending' AND not_before IS NULL AND sending_since < p_looked AND sender <> ALL (p_living) RETURNING 1)
  SELECT count(*) FROM left_behind
$$;
