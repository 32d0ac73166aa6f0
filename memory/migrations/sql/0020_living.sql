-- Which process is sending a reply, by the number under which it holds a lock as long as it lives.
ALTER TABLE outbox ADD COLUMN sender bigint;

-- As before, and notes who takes a row.
DROP FUNCTION claim_outbox(text, text[], integer, timestamptz, timestamptz, text);
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

-- What was being sent before p_looked by a process that is not among those that live is doubtful, and looked up at once.
CREATE FUNCTION doubt_sending_but_of(p_living bigint[], p_looked timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER AS $$
  WITH left_behind AS (
    UPDATE outbox SET not_before = p_looked
    WHERE state = 'sending' AND not_before IS NULL AND sending_since < p_looked AND sender <> ALL (p_living) RETURNING 1)
  SELECT count(*) FROM left_behind
$$;
