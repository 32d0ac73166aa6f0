-- What goes with time.

-- Deletes of one kind what is older than a time, of at most p_agents people and p_rows rows of each, and skips people whose turn commits
-- right now. Words go through the same door as everything that is forgotten: with their summaries, results, calls and log. What was made of a
-- message has a time of its own and stays. Returns whose, how many rows, and whether it may be seen in their prompt. Nothing returned:
-- nothing is left to do.
CREATE FUNCTION retain(p_kind text, p_before timestamptz, p_agents integer, p_rows integer) RETURNS TABLE (agent_id bigint, removed bigint, seen boolean)
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE a bigint; t text; wanted text; ids bigint[]; none CONSTANT bigint[] := '{}'; inside bigint[]; rare text[];
BEGIN
  SELECT k.t, k.wanted, k.seen INTO t, wanted, seen FROM (VALUES
    ('messages', 'messages', 'created_at < $1 AND kind <> ''quote'' AND NOT passing', true),
    ('quotes', 'messages', 'created_at < $1 AND kind = ''quote''', true),
    ('quotes_waiting', 'events', 'created_at < $1 AND payload ? ''quotes''', false),
    ('quotes_derived', 'working_context', 'updated_at < $1 AND author_id <> ''''', true),
    ('quotes_stored', 'passages', 'created_at < $1 AND author_id <> ''''', true),
    ('passing', 'messages', 'created_at < $1 AND passing', true),
    ('archival', 'passages', 'created_at < $1 AND document_id IS NULL', true),
    ('documents', 'documents', 'created_at < $1', true),
    ('timers', 'timers', 'created_at < $1 AND due_at IS NULL', false),
    ('requests', 'memory_requests', 'until < $1', false),
    ('deliveries', 'outbox', 'created_at < $1 AND state IN (''sent'', ''failed'', ''withdrawn'')', false),
    ('events', 'events', 'done_at < $1 AND status <> 0', false),
    ('usage', 'usage', 'at < $1', false),
    ('log', 'memory_log_content', 'log_id IN (SELECT l.id FROM memory_log l WHERE l.agent_id = r.agent_id AND l.at < $1)', false)
  ) k (kind, t, wanted, seen) WHERE k.kind = p_kind;
  IF t IS NULL THEN RAISE EXCEPTION 'no kind %', p_kind; END IF;
  -- The end of a pause reaches into other people's agents, as every forgetting may: one at a time.
  IF p_kind = 'passing' THEN PERFORM pg_advisory_xact_lock(hashtext('keepsake.erasure')); END IF;
  -- A turn that runs still needs its own.
  IF t = 'messages' THEN wanted := wanted || ' AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.id = r.turn_id AND turns.state = ''running'')'; END IF;
  FOR a IN EXECUTE format('SELECT a.id FROM agents a WHERE EXISTS (SELECT 1 FROM %I r WHERE r.agent_id = a.id AND %s) LIMIT $2', t, wanted)
           USING p_before, p_agents LOOP
    PERFORM 1 FROM agents WHERE id = a FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    IF p_kind = 'passing' THEN
      removed := drop_passing(a, p_before);
    ELSIF p_kind = 'quotes_waiting' THEN
      -- The message itself waits on.
      UPDATE events e SET payload = payload - 'quotes' WHERE e.agent_id = a AND e.created_at < p_before AND e.payload ? 'quotes';
      GET DIAGNOSTICS removed = ROW_COUNT;
    ELSIF t IN ('messages', 'working_context', 'passages', 'timers', 'documents') THEN
      EXECUTE format('SELECT ARRAY(SELECT r.id FROM %I r WHERE r.agent_id = $2 AND %s LIMIT $3)', t, wanted) INTO ids USING p_before, a, p_rows;
      -- The turns whose results, calls and thoughts show it: those that looked for it, those that stored it, and those that repeat it.
      EXECUTE format($q$SELECT ARRAY(SELECT f.turn_id FROM fetched f WHERE f.agent_id = $2 AND %s
          UNION SELECT r.turn_id FROM %I r WHERE r.id = ANY ($1) AND %s)$q$,
        CASE t WHEN 'messages' THEN 'f.message_id = ANY ($1)' WHEN 'passages' THEN 'f.passage_id = ANY ($1)'
          WHEN 'documents' THEN 'f.passage_id IN (SELECT p.id FROM passages p WHERE p.document_id = ANY ($1))' ELSE 'false' END,
        CASE t WHEN 'documents' THEN 'passages' ELSE t END,
        CASE t WHEN 'documents' THEN 'false' WHEN 'messages' THEN 'r.turn_id IS NOT NULL AND NOT EXISTS (SELECT FROM messages o WHERE o.turn_id = r.turn_id'
          ' AND o.id <> ALL ($1) AND o.kind IN (''message'', ''event'') AND o.role = ''user'')' ELSE 'r.turn_id IS NOT NULL' END)
        INTO inside USING ids, a;
      rare := CASE WHEN p_kind LIKE 'quotes%' THEN (SELECT r.rare FROM forget_reach(a, CASE t WHEN 'messages' THEN ids ELSE none END,
        CASE t WHEN 'working_context' THEN ids ELSE none END, CASE t WHEN 'passages' THEN ids ELSE none END, none) r) ELSE '{}'::text[] END;
      IF rare <> '{}' THEN
        inside := inside || ARRAY(SELECT m.turn_id FROM messages m WHERE m.agent_id = a AND m.turn_id IS NOT NULL
          AND (m.kind IN ('call', 'result', 'monologue') OR m.calls IS NOT NULL) AND has_rare(rare, m.content || ' ' || coalesce(words_of(m.calls), '')));
      END IF;
      PERFORM forget_rows(a, CASE t WHEN 'messages' THEN ids ELSE none END, CASE t WHEN 'working_context' THEN ids ELSE none END,
        CASE t WHEN 'passages' THEN ids ELSE none END, CASE t WHEN 'timers' THEN ids ELSE none END, CASE t WHEN 'documents' THEN ids ELSE none END,
        none, none, inside, '{}', NULL, false);
      removed := cardinality(ids);
    ELSE
      EXECUTE format('DELETE FROM %1$I WHERE ctid = ANY (ARRAY(SELECT r.ctid FROM %1$I r WHERE r.agent_id = $2 AND %2$s LIMIT $3))', t, wanted)
        USING p_before, a, p_rows;
      GET DIAGNOSTICS removed = ROW_COUNT;
    END IF;
    IF seen AND removed > 0 THEN UPDATE agents SET version = version + 1 WHERE id = a; END IF;
    agent_id := a;
    IF removed > 0 THEN RETURN NEXT; END IF;
  END LOOP;
END $$;

-- Deletes what was said while memory was paused, before a time, but for the turn that runs; a dead letter of it has nothing left to replay.
-- Returns how many messages.
CREATE FUNCTION drop_passing(p_agent bigint, p_before timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE passed bigint[]; r record;
BEGIN
  passed := ARRAY(SELECT id FROM messages WHERE agent_id = p_agent AND passing AND created_at < p_before
    AND (turn_id IS NULL OR turn_id NOT IN (SELECT id FROM turns WHERE agent_id = p_agent AND state = 'running')));
  IF passed <> '{}' THEN
    SELECT * INTO r FROM forget_reach(p_agent, passed, '{}', '{}', '{}');
    PERFORM forget_rows(p_agent, r.messages, r.entries, r.passages, r.timers, '{}', '{}', r.turns, r.made_in, r.rare, p_unsent => false);
  END IF;
  RETURN cardinality(passed);
END $$;

-- Erasures and decisions are remembered as long as a backup may bring somebody or something back.
CREATE FUNCTION retain_erasures(p_before timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER AS $$
  WITH old AS (DELETE FROM decisions WHERE at < p_before RETURNING 1), gone AS (DELETE FROM erased_people WHERE at < p_before RETURNING 1)
  SELECT (SELECT count(*) FROM old) + (SELECT count(*) FROM gone)
$$;

-- Notes that the app was removed from a workspace, or that it is back.
CREATE FUNCTION workspace_left(p_platform text, p_realm text, p_workspace text, p_left boolean, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF p_workspace = '' THEN RETURN; END IF;
  IF p_left THEN
    INSERT INTO workspaces_left VALUES (p_platform, p_realm, p_workspace, p_now) ON CONFLICT DO NOTHING;
  ELSE
    DELETE FROM workspaces_left WHERE platform = p_platform AND realm = p_realm AND workspace = p_workspace;
  END IF;
END $$;

-- Forgets what came from workspaces that were left before a time, and what was made of it elsewhere, of at most p_agents people. Returns whose.
CREATE FUNCTION retain_workspaces(p_before timestamptz, p_agents integer) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE a bigint; here bigint[]; t text;
BEGIN
  -- Whoever speaks there is proof that the app is back.
  DELETE FROM workspaces_left w WHERE EXISTS (SELECT 1 FROM places p JOIN events e ON e.place_id = p.id
    WHERE p.platform = w.platform AND p.realm = w.realm AND p.workspace = w.workspace AND e.created_at > w.left_at);
  FOR a IN SELECT DISTINCT c.agent_id FROM workspaces_left w JOIN places p USING (platform, realm, workspace) JOIN conversations c ON c.place_id = p.id
           WHERE w.left_at < p_before AND p.kind <> 'direct' LIMIT p_agents LOOP
    PERFORM 1 FROM agents WHERE id = a FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    here := ARRAY(SELECT p.id FROM workspaces_left w JOIN places p USING (platform, realm, workspace) WHERE w.left_at < p_before AND p.kind <> 'direct');
    PERFORM forget(a, ARRAY(SELECT id FROM messages WHERE agent_id = a AND place_id = ANY (here)),
      ARRAY(SELECT id FROM working_context WHERE agent_id = a AND place_id = ANY (here)),
      ARRAY(SELECT id FROM passages WHERE agent_id = a AND place_id = ANY (here) AND document_id IS NULL), ARRAY(SELECT id FROM timers WHERE agent_id = a AND place_id = ANY (here)),
      ARRAY(SELECT id FROM documents WHERE agent_id = a AND place_id = ANY (here)),
      ARRAY(SELECT id FROM conversations WHERE agent_id = a AND place_id = ANY (here)), false);
    -- The bookkeeping of those places goes as well.
    FOR t IN SELECT r.relname FROM pg_attribute x JOIN pg_class r ON r.oid = x.attrelid JOIN pg_attribute y ON y.attrelid = r.oid AND y.attname = 'agent_id'
             WHERE x.attname = 'place_id' AND r.relnamespace = 'keepsake'::regnamespace AND r.relkind = 'r'
             ORDER BY array_position(ARRAY['messages', 'events', 'outbox', 'turns', 'conversations']::text[], r.relname::text) NULLS FIRST LOOP
      EXECUTE format('DELETE FROM %I WHERE agent_id = $1 AND place_id = ANY ($2)', t) USING a, here;
    END LOOP;
    UPDATE agents SET version = version + 1 WHERE id = a;
    RETURN NEXT a;
  END LOOP;
END $$;
