CREATE FUNCTION row_about(p_table text, p_id bigint, p_made timestamptz) RETURNS text LANGUAGE sql IMMUTABLE
AS $$ SELECT p_table || ':' || p_id || ':' || extract(epoch FROM p_made) $$;

-- What was removed is there again, or lives on elsewhere: a restored backup may have it.
CREATE FUNCTION note_kept(p_table text, p_id bigint, p_made timestamptz) RETURNS void LANGUAGE sql SECURITY DEFINER
AS $$ INSERT INTO decisions (agent_id, kind, about) VALUES (current_agent(), 'kept', row_about(p_table, p_id, p_made)) $$;

CREATE FUNCTION about_hash(p_key bytea, p_about text) RETURNS bytea LANGUAGE sql IMMUTABLE
AS $$ SELECT sha256(p_key || convert_to('row' || E'\x1f' || p_about, 'UTF8')) $$;

-- What was decided, for the file beside the key: rows and accounts by a keyed hash, blocks as the hash that `blocks` holds.
CREATE FUNCTION decision_record(p_key bytea) RETURNS TABLE (kind text, hash bytea, at timestamptz)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT q.kind, q.hash, max(q.at) FROM (
    SELECT d.kind, d.hash, d.at FROM decisions d WHERE d.hash IS NOT NULL
    UNION ALL SELECT d.kind, about_hash(p_key, d.about), d.at FROM decisions d WHERE d.hash IS NULL AND d.kind IN ('forgotten', 'kept', 'shared', 'unshared')
    UNION ALL SELECT d.kind, person_hash(p_key, split_part(d.about, E'\x1f', 1), split_part(d.about, E'\x1f', 2), split_part(d.about, E'\x1f', 3)), d.at
      FROM decisions d WHERE d.hash IS NULL AND d.kind IN ('linked', 'unlinked')
    UNION ALL SELECT d.kind, person_hash(p_key, i.platform, i.realm, i.user_id), d.at FROM decisions d JOIN identities i ON i.agent_id = d.agent_id
      WHERE d.hash IS NULL AND d.about = '') q
  GROUP BY 1, 2
$$;

-- Applies again what was decided after a backup was made. The caller has left out what was decided otherwise since. One transaction, so that
-- a crash leaves it to be done. Returns how many things of a kind that was, and of whom.
CREATE FUNCTION reapply_decisions(p_kinds text[], p_hashes bytea[], p_times timestamptz[], p_key bytea, p_now timestamptz)
RETURNS TABLE (kind text, agent bigint, number bigint)
LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE each record; t text; ids bigint[]; done bigint;
BEGIN
  -- Parted first, so that the rest finds each account's own agent.
  FOR each IN SELECT i.*, r.k FROM unnest(p_kinds, p_hashes, p_times) r(k, h, at)
      JOIN identities i ON person_hash(p_key, i.platform, i.realm, i.user_id) = r.h AND i.created_at < r.at WHERE r.k = 'unlinked' LOOP
    IF unlink_account(each.agent_id, each.platform, each.realm, each.user_id, p_now) IS NOT NULL THEN
      kind := each.k; agent := each.agent_id; number := 1;
      RETURN NEXT;
    END IF;
  END LOOP;
  FOR each IN SELECT DISTINCT i.agent_id, r.k FROM unnest(p_kinds, p_hashes, p_times) r(k, h, at)
      JOIN identities i ON person_hash(p_key, i.platform, i.realm, i.user_id) = r.h AND i.created_at < r.at
      WHERE r.k IN ('paused', 'held', 'refused', 'uncrossed') LOOP
    CASE each.k
      WHEN 'paused' THEN UPDATE agents SET paused = true, version = version + 1 WHERE id = each.agent_id AND NOT paused;
      WHEN 'held' THEN UPDATE agents SET paused = true, held = true, version = version + 1 WHERE id = each.agent_id AND NOT held;
      WHEN 'uncrossed' THEN UPDATE agents SET cross_accounts = false, version = version + 1 WHERE id = each.agent_id AND cross_accounts;
      ELSE INSERT INTO speaking AS s (agent_id, openers, decided_at) VALUES (each.agent_id, 'no', p_now)
        ON CONFLICT (agent_id) DO UPDATE SET openers = 'no', decided_at = p_now WHERE s.openers <> 'no';
    END CASE;
    CONTINUE WHEN NOT FOUND;
    kind := each.k; agent := each.agent_id; number := 1;
    RETURN NEXT;
  END LOOP;
  FOR each IN SELECT substr(r.h, 1, 32) AS hash, convert_from(substr(r.h, 33), 'UTF8') AS workspace, r.at FROM unnest(p_kinds, p_hashes, p_times) r(k, h, at)
      WHERE r.k = 'blocked' LOOP
    INSERT INTO blocks (hash, workspace, at) VALUES (each.hash, each.workspace, each.at) ON CONFLICT DO NOTHING;
    CONTINUE WHEN NOT FOUND;
    kind := 'blocked'; agent := NULL; number := 1;
    RETURN NEXT;
  END LOOP;
  FOR each IN SELECT array_agg(DISTINCT q.author) AS authors FROM (SELECT author_id AS author FROM messages WHERE kind = 'quote' GROUP BY 1
        UNION SELECT author_id FROM working_context GROUP BY 1 UNION SELECT author_id FROM passages GROUP BY 1) q
      JOIN unnest(p_kinds, p_hashes) r(k, h) ON r.k = 'unquoted' AND author_hash(p_key, q.author) = r.h WHERE q.author <> '' LOOP
    CONTINUE WHEN each.authors IS NULL;
    ids := forget_quoted('{}', each.authors, ARRAY(
      SELECT i.agent_id FROM identities i WHERE i.platform || ':' || i.realm || ':' || i.user_id = ANY (each.authors)));
    RETURN QUERY SELECT 'unquoted', a, 1::bigint FROM unnest(ids) a;
  END LOOP;
  IF p_kinds && ARRAY['unshared'] THEN
    FOREACH t IN ARRAY ARRAY['messages', 'working_context', 'passages', 'timers', 'documents'] LOOP
      FOR each IN EXECUTE format('WITH kept AS (UPDATE %I x SET shareable = false FROM unnest($1, $2) r(k, h)
          WHERE r.k = ''unshared'' AND x.shareable AND about_hash($3, row_about(%L, x.id, x.created_at)) = r.h RETURNING x.agent_id)
          SELECT agent_id, count(*) AS n FROM kept GROUP BY 1', t, t) USING p_kinds, p_hashes, p_key LOOP
        kind := 'unshared'; agent := each.agent_id; number := each.n;
        RETURN NEXT;
      END LOOP;
    END LOOP;
  END IF;
  IF p_kinds && ARRAY['forgotten'] THEN
    FOREACH t IN ARRAY ARRAY['memory_log_content', 'memory_requests'] LOOP
      FOR each IN EXECUTE CASE WHEN t = 'memory_log_content'
          THEN 'WITH gone AS (DELETE FROM memory_log_content x USING memory_log l, unnest($1, $2) r(k, h) WHERE l.id = x.log_id AND r.k = ''forgotten''
                  AND about_hash($3, row_about(''memory_log_content'', x.log_id, l.at)) = r.h RETURNING x.agent_id)'
          ELSE 'WITH gone AS (DELETE FROM memory_requests x USING unnest($1, $2) r(k, h) WHERE r.k = ''forgotten''
                  AND about_hash($3, row_about(''memory_requests'', x.id, x.created_at)) = r.h RETURNING x.agent_id)' END
          || ' SELECT agent_id, count(*) AS n FROM gone GROUP BY 1' USING p_kinds, p_hashes, p_key LOOP
        UPDATE agents SET version = version + 1 WHERE id = each.agent_id;
        kind := 'forgotten'; agent := each.agent_id; number := each.n;
        RETURN NEXT;
      END LOOP;
    END LOOP;
    -- Everything else the way it was forgotten, with whatever came of it: calls and copies have no decision of their own.
    FOR each IN SELECT x.agent_id, count(*) AS n, array_agg(x.id) FILTER (WHERE x.t = 'messages') AS m, array_agg(x.id) FILTER (WHERE x.t = 'working_context') AS w,
        array_agg(x.id) FILTER (WHERE x.t = 'passages') AS a, array_agg(x.id) FILTER (WHERE x.t = 'timers') AS t, array_agg(x.id) FILTER (WHERE x.t = 'documents') AS d
      FROM (SELECT agent_id, id, created_at, 'messages' AS t FROM messages UNION ALL SELECT agent_id, id, created_at, 'working_context' FROM working_context
        UNION ALL SELECT agent_id, id, created_at, 'passages' FROM passages UNION ALL SELECT agent_id, id, created_at, 'timers' FROM timers
        UNION ALL SELECT agent_id, id, created_at, 'documents' FROM documents) x
      JOIN unnest(p_kinds, p_hashes) r(k, h) ON r.k = 'forgotten' AND about_hash(p_key, row_about(x.t, x.id, x.created_at)) = r.h GROUP BY 1 LOOP
      PERFORM forget(each.agent_id, coalesce(each.m, '{}'), coalesce(each.w, '{}'), coalesce(each.a, '{}'), coalesce(each.t, '{}'), coalesce(each.d, '{}'));
      UPDATE agents SET version = version + 1 WHERE id = each.agent_id;
      kind := 'forgotten'; agent := each.agent_id; number := each.n;
      RETURN NEXT;
    END LOOP;
  END IF;
  INSERT INTO decisions (kind, hash, at) SELECT r.k, r.h, r.at FROM unnest(p_kinds, p_hashes, p_times) r(k, h, at);
END $$;

-- What stands of somebody's words in other people's memory, for themselves to look at: the quotes, newest first, with the channel they were
-- said in (kind direct: somebody brought them along into a direct message, whose is nobody's business).
CREATE FUNCTION quoted_words(p_authors text[], p_except bigint) RETURNS TABLE (at timestamptz, content text, kind text, name text)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT m.created_at, m.content, p.kind, CASE WHEN p.kind = 'direct' THEN '' ELSE p.name END FROM messages m JOIN places p ON p.id = m.place_id
  WHERE m.kind = 'quote' AND m.author_id = ANY (p_authors) AND m.agent_id IS DISTINCT FROM p_except ORDER BY m.created_at DESC, m.id DESC
$$;

-- How much that is, with what was noted of it and what waits with it. All zero after an erasure.
CREATE FUNCTION quoted_total(p_authors text[], p_except bigint) RETURNS TABLE (quotes bigint, noted bigint, waiting bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT (SELECT count(*) FROM messages WHERE kind = 'quote' AND author_id = ANY (p_authors) AND agent_id IS DISTINCT FROM p_except),
    (SELECT count(*) FROM working_context WHERE author_id = ANY (p_authors) AND agent_id IS DISTINCT FROM p_except)
      + (SELECT count(*) FROM passages WHERE author_id = ANY (p_authors) AND agent_id IS DISTINCT FROM p_except),
    (SELECT count(*) FROM events e WHERE e.payload ? 'quotes' AND e.agent_id IS DISTINCT FROM p_except AND EXISTS (
      SELECT 1 FROM jsonb_array_elements(e.payload->'quotes') q WHERE q->>'author_id' = ANY (p_authors)))
$$;

-- Erases somebody's words in other people's memory. Who has no agent is also quoted nowhere for a week, as whoever was erased; what was asked for
-- is asked of a restored backup too. Returns how much it was and in whose memory, for the cache alone.
CREATE FUNCTION erase_quotes(p_authors text[], p_agent bigint, p_actor text, p_hash_key bytea, p_now timestamptz, OUT total bigint, OUT touched bigint[])
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE author text; hashed bytea;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('keepsake.erasure'));
  total := quoted_rows(p_authors);
  touched := forget_quoted('{}', p_authors, ARRAY[coalesce(p_agent, 0)]);
  FOREACH author IN ARRAY p_authors LOOP
    hashed := author_hash(p_hash_key, author);
    INSERT INTO decisions (agent_id, kind, hash) VALUES (p_agent, 'unquoted', hashed);
    IF p_agent IS NULL THEN
      INSERT INTO erased_people (hash, at) VALUES (hashed, clock_timestamp()) ON CONFLICT (hash) DO UPDATE SET at = excluded.at;
    END IF;
  END LOOP;
  INSERT INTO erasures (at, actor, counts) VALUES (p_now, p_actor, jsonb_build_object('quotes', total));
END $$;

-- As person_hash, of a name as it stands with words: platform:realm:user. Only the user's id may hold colons.
CREATE FUNCTION author_hash(p_key bytea, p_author text) RETURNS bytea LANGUAGE sql IMMUTABLE
AS $$ SELECT person_hash(p_key, split_part(p_author, ':', 1), split_part(p_author, ':', 2),
        substr(p_author, length(split_part(p_author, ':', 1)) + length(split_part(p_author, ':', 2)) + 3)) $$;
