-- Erasing a person, the proof of it, and doing it again after a restored backup.

-- A whole person: own rows by cascade, which is quicker than any walk, and what others hold of them by the walk.
CREATE FUNCTION erase_agent(p_agent bigint, p_actor text, p_hash_key bytea, p_now timestamptz) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE counts jsonb := '{}'; each record; n bigint; mine bigint[]; authors text[]; homes bigint[]; others bigint[]; origins text[];
BEGIN
  -- One at a time: two people who quote each other would wait for each other.
  PERFORM pg_advisory_xact_lock(hashtext('keepsake.erasure'));
  mine := ARRAY(SELECT p_agent UNION SELECT agent_id FROM identities WHERE merged_into = p_agent);
  PERFORM 1 FROM agents WHERE id = ANY (mine) ORDER BY id FOR UPDATE;
  authors := ARRAY(SELECT platform || ':' || realm || ':' || user_id FROM identities WHERE agent_id = ANY (mine) OR merged_into = ANY (mine));
  homes := ARRAY(SELECT id FROM places p WHERE owner_id = ANY (mine) AND NOT EXISTS (
    SELECT 1 FROM conversations c WHERE c.place_id = p.id AND NOT c.agent_id = ANY (mine)));
  -- What was said to them in a place where others are; a direct message is quoted nowhere.
  origins := ARRAY(SELECT o.channel || '/' || o.platform_id FROM outbox o JOIN places p ON p.id = o.place_id
    WHERE o.agent_id = ANY (mine) AND o.platform_id IS NOT NULL AND p.kind <> 'direct');
  INSERT INTO erased_events (hash, until)
    SELECT sha256(p_hash_key || convert_to(source || E'\x1f' || idem, 'UTF8')), p_now + interval '7 days'
    FROM events WHERE agent_id = ANY (mine) ON CONFLICT DO NOTHING;
  INSERT INTO erased_people (hash, at)
    SELECT person_hash(p_hash_key, platform, realm, user_id), clock_timestamp() FROM identities WHERE agent_id = ANY (mine) OR merged_into = ANY (mine)
    ON CONFLICT (hash) DO UPDATE SET at = excluded.at;
  -- Procrastinate's own triggers name its tables without their schema.
  PERFORM set_config('search_path', 'keepsake, procrastinate, public, pg_temp', true);
  DELETE FROM procrastinate.procrastinate_jobs WHERE status = 'todo' AND lock = ANY (ARRAY(SELECT 'agent:' || unnest(mine)));
  GET DIAGNOSTICS n = ROW_COUNT;
  counts := counts || jsonb_build_object('jobs', n);
  FOR each IN SELECT * FROM personal_columns() LOOP
    EXECUTE format('DELETE FROM %I WHERE %I = ANY ($1)', each.t, each.c) USING mine;
    GET DIAGNOSTICS n = ROW_COUNT;
    counts := counts || jsonb_build_object(each.t, n + coalesce((counts->>each.t)::bigint, 0));
  END LOOP;
  -- Their direct messages name them too. The rows go with the next upkeep, which may look through every table for what hangs on them.
  UPDATE places SET external_id = 'erased:' || id, name = '', owner_id = NULL WHERE id = ANY (homes);
  GET DIAGNOSTICS n = ROW_COUNT;
  counts := counts || jsonb_build_object('places', n);
  DELETE FROM agents WHERE id = ANY (mine);
  -- Last, as it holds up others.
  n := quoted_rows(authors);
  others := forget_quoted(origins, authors, mine);
  counts := counts || jsonb_build_object('quotes', n);
  INSERT INTO erasures (at, actor, counts) VALUES (p_now, p_actor, counts);
  -- The other agents whose cached state held any of it, for the caller alone.
  RETURN counts || jsonb_build_object('touched', to_jsonb(others));
END $$;

-- The columns through which a table's rows belong to an agent and go with it; found in the schema, so that a later table is not forgotten.
CREATE FUNCTION personal_columns() RETURNS TABLE (t text, c text) LANGUAGE sql STABLE AS $$
  SELECT r.relname::text, a.attname::text FROM pg_constraint k
  JOIN pg_class r ON r.oid = k.conrelid JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = k.conkey[1]
  WHERE k.contype = 'f' AND k.confrelid = 'keepsake.agents'::regclass AND k.confdeltype = 'c' AND cardinality(k.conkey) = 1
    AND r.relnamespace = 'keepsake'::regnamespace
  -- What hangs on other rows first, so that it goes at once instead of row by row.
  ORDER BY array_position(ARRAY['memory_log', 'outbox', 'messages', 'passages', 'working_context', 'events', 'timers', 'documents', 'turns', 'conversations', 'identities']::text[], r.relname::text) NULLS FIRST, 1, 2
$$;

-- Tables that have all of these columns, found in the schema, so that a later table is not forgotten.
CREATE FUNCTION tables_with(p_columns text[]) RETURNS SETOF text LANGUAGE sql STABLE AS $$
  SELECT r.relname::text FROM pg_class r WHERE r.relnamespace = 'keepsake'::regnamespace AND r.relkind = 'r'
    AND cardinality(p_columns) = (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attname = ANY (p_columns) AND NOT a.attisdropped)
  ORDER BY 1
$$;

-- Under which names an agent's person is quoted (platform:realm:user); to be asked before an erasure, also for the proof after it.
CREATE FUNCTION authors_of(p_agent bigint) RETURNS text[] LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH mine AS (SELECT p_agent AS id UNION SELECT agent_id FROM identities WHERE merged_into = p_agent)
  SELECT coalesce(array_agg(platform || ':' || realm || ':' || user_id), '{}') FROM identities
  WHERE agent_id IN (SELECT id FROM mine) OR merged_into IN (SELECT id FROM mine)
$$;

-- What is left of an agent anywhere, and of its person's words in anybody's rows: the proof after an erasure. All zero, or the erasure failed.
-- It asks no eraser where it looked: every column called author_id or said_to and every JSON column of every table is searched for the names.
-- A job that runs ends by itself, as there is nothing left to claim, and is not counted.
CREATE FUNCTION residue(p_agent bigint, p_authors text[] DEFAULT '{}') RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER STABLE AS $$
DECLARE counts jsonb := '{}'; each record; n bigint; named CONSTANT text[] := ARRAY(SELECT to_jsonb(a)::text FROM unnest(p_authors) a);
BEGIN
  FOR each IN SELECT r.relname::text AS t, a.attname::text AS c,
      CASE WHEN a.attname IN ('author_id', 'said_to') THEN '%1$I <> '''' AND %1$I = ANY ($2)'
        WHEN a.atttypid IN ('json'::regtype, 'jsonb'::regtype) THEN 'EXISTS (SELECT 1 FROM unnest($3) name WHERE position(name IN %I::text) > 0)'
        ELSE '%I = $1' END AS found
    FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
    WHERE r.relnamespace = 'keepsake'::regnamespace AND r.relkind IN ('r', 'p') AND NOT a.attisdropped AND a.attnum > 0
      AND (a.attname IN ('agent_id', 'author_id', 'said_to') OR a.atttypid IN ('json'::regtype, 'jsonb'::regtype)
        OR EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conrelid = r.oid AND k.contype = 'f'
             AND k.confrelid = 'keepsake.agents'::regclass AND k.conkey = ARRAY[a.attnum])) ORDER BY 1, 2 LOOP
    EXECUTE format('SELECT count(*) FROM %I WHERE ', each.t) || format(each.found, each.c) INTO n USING p_agent, p_authors, named;
    counts := counts || jsonb_build_object(each.t, n + coalesce((counts->>each.t)::bigint, 0));
  END LOOP;
  SELECT count(*) INTO n FROM agents WHERE id = p_agent;
  counts := counts || jsonb_build_object('agents', n);
  SELECT count(*) INTO n FROM procrastinate.procrastinate_jobs WHERE status = 'todo' AND lock = 'agent:' || p_agent;
  RETURN counts || jsonb_build_object('jobs', n);
END $$;

-- A person as the record of erasures names them.
CREATE FUNCTION person_hash(p_key bytea, p_platform text, p_realm text, p_user text) RETURNS bytea LANGUAGE sql IMMUTABLE
AS $$ SELECT sha256(p_key || convert_to('person' || E'\x1f' || p_platform || E'\x1f' || p_realm || E'\x1f' || p_user, 'UTF8')) $$;

-- The record of erasures, to be kept beside the database and merged into a restored one. Hashes and times only.
CREATE FUNCTION erasure_record() RETURNS TABLE (kind text, hash bytea, at timestamptz)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT 'person', hash, at FROM erased_people UNION ALL SELECT 'event', hash, until FROM erased_events
$$;

-- Merges a record into this database's, and erases again whoever is here although they were erased after they came: only a restored backup
-- brings them. One transaction, so that a crash leaves it to be done. Returns whom.
CREATE FUNCTION reapply_erasures(p_kinds text[], p_hashes bytea[], p_times timestamptz[], p_hash_key bytea, p_now timestamptz) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE a bigint;
BEGIN
  INSERT INTO erased_events (hash, until) SELECT r.h, r.t FROM unnest(p_kinds, p_hashes, p_times) r(k, h, t) WHERE r.k = 'event' ON CONFLICT DO NOTHING;
  INSERT INTO erased_people (hash, at) SELECT r.h, max(r.t) FROM unnest(p_kinds, p_hashes, p_times) r(k, h, t) WHERE r.k = 'person' GROUP BY 1
    ON CONFLICT (hash) DO UPDATE SET at = greatest(erased_people.at, excluded.at);
  FOR a IN SELECT DISTINCT coalesce(i.merged_into, i.agent_id) FROM identities i
           JOIN erased_people e ON e.hash = person_hash(p_hash_key, i.platform, i.realm, i.user_id) AND e.at > i.created_at LOOP
    PERFORM erase_agent(a, 'system', p_hash_key, p_now);
    RETURN NEXT a;
  END LOOP;
END $$;

-- Drops the hashes whose week is over, and places that nothing hangs on any more. Returns how many hashes.
CREATE FUNCTION purge_erased(p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE n bigint; home bigint;
BEGIN
  DELETE FROM erased_events WHERE until <= p_now;
  GET DIAGNOSTICS n = ROW_COUNT;
  FOR home IN SELECT id FROM places p WHERE external_id = 'erased:' || id AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.place_id = p.id)
              FOR UPDATE SKIP LOCKED LOOP
    BEGIN
      DELETE FROM places WHERE id = home;
    EXCEPTION WHEN foreign_key_violation THEN NULL;
    END;
  END LOOP;
  RETURN n;
END $$;
