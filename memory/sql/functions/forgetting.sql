-- Taking words out of everything that repeats them.

-- Takes messages that are about to go out of every summary that covers them. In the log: also of conversations that /fresh has ended since.
-- In slot 0: the last summary made without them stands again, and what came after is to be summed up again, at the next turn, from recall
-- storage. Returns whether the one in slot 0 covered any.
CREATE FUNCTION unsummarise(p_conversation bigint, p_positions bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE c conversations; first bigint; base record; again bigint;
BEGIN
  -- A summary reaches from the last /fresh before it (whose entry says how far that reached) to what it covers.
  DELETE FROM memory_log_content k USING (
      SELECT l.id, l.covers, coalesce(max(l.covers) FILTER (WHERE l.target = 'conversation')
        OVER (ORDER BY l.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS after
      FROM memory_log l WHERE l.target IN ('summary', 'conversation') AND l.target_id = p_conversation) l
    WHERE k.log_id = l.id AND EXISTS (SELECT 1 FROM unnest(p_positions) p WHERE p > l.after AND p <= coalesce(l.covers, p));
  SELECT * INTO c FROM conversations WHERE id = p_conversation;
  first := (SELECT min(p) FROM unnest(p_positions) p WHERE p >= coalesce(c.summary_from, 1) AND p < c.fifo_start);
  IF first IS NULL OR (c.summary = '' AND c.summary_tail = '') THEN
    RETURN false;
  END IF;
  SELECT l.covers, k.after INTO base FROM memory_log l JOIN memory_log_content k ON k.log_id = l.id
    WHERE l.target = 'summary' AND l.target_id = p_conversation AND l.covers < first AND l.covers >= coalesce(c.summary_from, 1)
      AND k.after IS NOT NULL ORDER BY l.id DESC LIMIT 1;
  again := coalesce(base.covers + 1, c.summary_from, 1);
  UPDATE conversations SET summary = coalesce(base.after, ''), summary_tail = '', pending_from = least(again, coalesce(pending_from, again))
    WHERE id = p_conversation;
  DELETE FROM sources s USING messages m WHERE s.conversation_id = p_conversation AND m.id = s.message_id AND m.position >= again;
  RETURN true;
END $$;

