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

-- Takes texts out of the results that showed them, and the calls of turns out that wrote something of them.
CREATE FUNCTION drop_repeated(p_agents bigint[], p_texts text[], p_turns bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE heads text[];
BEGIN
  -- Results hold texts as JSON.
  heads := ARRAY(SELECT DISTINCT btrim(to_jsonb(left(t, 200))::text, '"') FROM unnest(p_texts) t WHERE length(t) >= 8);
  UPDATE messages m SET content = '(What was found here is no longer kept.)' WHERE m.agent_id = ANY (p_agents) AND m.kind = 'result'
    AND EXISTS (SELECT 1 FROM unnest(heads) head WHERE position(head IN m.content) > 0);
  -- Calls and results leave together, so that no call stays without its result.
  DELETE FROM messages WHERE agent_id = ANY (p_agents) AND turn_id = ANY (p_turns) AND kind IN ('call', 'result', 'monologue');
  UPDATE messages SET calls = NULL WHERE agent_id = ANY (p_agents) AND turn_id = ANY (p_turns) AND calls IS NOT NULL;
END $$;

-- What other agents hold of somebody's words: quotes, what was derived from them, results that show them, summaries that cover them, quotes
-- in events. Their versions rise, so that a running turn that has read any of it starts its pass again. Returns the agents.
CREATE FUNCTION forget_author(p_authors text[], p_except bigint[], OUT total bigint, OUT touched bigint[]) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE n bigint; each record; entries bigint[]; stored bigint[];
BEGIN
  -- Also what repeated them once and was changed or removed since: the log has it as it was.
  entries := ARRAY(SELECT id FROM working_context WHERE author_id = ANY (p_authors) UNION SELECT l.target_id FROM memory_log l
    JOIN memory_log_content k ON k.log_id = l.id
    WHERE l.target = 'working_context' AND k.row_before->>'author_id' <> '' AND k.row_before->>'author_id' = ANY (p_authors));
  stored := ARRAY(SELECT id FROM passages WHERE author_id = ANY (p_authors) UNION SELECT l.target_id FROM memory_log l
    JOIN memory_log_content k ON k.log_id = l.id
    WHERE l.target = 'passage' AND k.row_before->>'author_id' <> '' AND k.row_before->>'author_id' = ANY (p_authors));
  touched := ARRAY(
    SELECT agent_id FROM messages WHERE kind = 'quote' AND author_id = ANY (p_authors)
    UNION SELECT agent_id FROM working_context WHERE author_id = ANY (p_authors)
    UNION SELECT agent_id FROM passages WHERE author_id = ANY (p_authors)
    UNION SELECT agent_id FROM memory_log WHERE (target = 'working_context' AND target_id = ANY (entries)) OR (target = 'passage' AND target_id = ANY (stored))
    UNION SELECT agent_id FROM events e WHERE e.payload ? 'quotes' AND EXISTS (
      SELECT 1 FROM jsonb_array_elements(e.payload->'quotes') q WHERE q->>'author_id' = ANY (p_authors)));
  touched := ARRAY(SELECT unnest(touched) EXCEPT SELECT unnest(p_except));
  total := 0;
  IF touched = '{}' THEN RETURN; END IF;
  PERFORM 1 FROM agents WHERE id = ANY (touched) ORDER BY id FOR NO KEY UPDATE;
  FOR each IN SELECT conversation_id, array_agg(position) AS positions FROM messages
              WHERE kind = 'quote' AND author_id = ANY (p_authors) AND agent_id = ANY (touched) GROUP BY 1 LOOP
    PERFORM unsummarise(each.conversation_id, each.positions);
  END LOOP;
  PERFORM drop_repeated(touched,
    ARRAY(SELECT content FROM messages WHERE kind = 'quote' AND author_id = ANY (p_authors) AND agent_id = ANY (touched)),
    ARRAY(SELECT turn_id FROM working_context WHERE author_id = ANY (p_authors) AND agent_id = ANY (touched)
          UNION SELECT turn_id FROM passages WHERE author_id = ANY (p_authors) AND agent_id = ANY (touched)
          UNION SELECT turn_id FROM memory_log WHERE agent_id = ANY (touched) AND turn_id IS NOT NULL
            AND ((target = 'working_context' AND target_id = ANY (entries)) OR (target = 'passage' AND target_id = ANY (stored)))));
  DELETE FROM memory_log_content k USING memory_log l WHERE l.id = k.log_id AND l.agent_id = ANY (touched)
    AND ((l.target = 'working_context' AND l.target_id = ANY (entries)) OR (l.target = 'passage' AND l.target_id = ANY (stored)));
  DELETE FROM messages WHERE kind = 'quote' AND author_id = ANY (p_authors) AND agent_id = ANY (touched);
  GET DIAGNOSTICS total = ROW_COUNT;
  DELETE FROM working_context WHERE author_id = ANY (p_authors) AND agent_id = ANY (touched);
  GET DIAGNOSTICS n = ROW_COUNT;
  total := total + n;
  DELETE FROM passages WHERE author_id = ANY (p_authors) AND agent_id = ANY (touched);
  GET DIAGNOSTICS n = ROW_COUNT;
  total := total + n;
  UPDATE events e SET payload = jsonb_set(payload, '{quotes}', (
      SELECT coalesce(jsonb_agg(q), '[]') FROM jsonb_array_elements(e.payload->'quotes') q WHERE NOT coalesce(q->>'author_id' = ANY (p_authors), false)))
    WHERE e.agent_id = ANY (touched) AND e.payload ? 'quotes';
  UPDATE agents SET version = version + 1 WHERE id = ANY (touched);
END $$;
