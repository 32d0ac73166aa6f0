-- What people do with their memory: pausing, consent, retention, undoing, erasures.

-- commands --------------------------------------------------------------------------------------------

-- The row as it was before a change (null: there was none), so that the change can be undone; and which change another one took back.
ALTER TABLE memory_log_content ADD COLUMN row_before jsonb;
ALTER TABLE memory_log ADD COLUMN undoes bigint;

-- What a turn's searches brought into its prompt: for /memory why, and so that forgetting finds the results that show a row.
CREATE TABLE fetched (
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  turn_id    bigint NOT NULL REFERENCES turns ON DELETE CASCADE,
  message_id bigint REFERENCES messages ON DELETE CASCADE,
  passage_id bigint REFERENCES passages ON DELETE CASCADE,
  CHECK (num_nonnulls(message_id, passage_id) = 1)
);
CREATE INDEX ON fetched (agent_id);
CREATE INDEX ON fetched (turn_id);
CREATE INDEX ON fetched (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX ON fetched (passage_id) WHERE passage_id IS NOT NULL;
CALL protect('fetched', 'agent');
GRANT SELECT, INSERT, DELETE ON fetched TO keepsake_bot;

-- An operator's pause, which the person cannot end.
ALTER TABLE agents ADD COLUMN held boolean NOT NULL DEFAULT false;

-- Pauses one person, or with null everybody, or ends that again where an operator had done it. Returns whom it changed.
CREATE FUNCTION hold(p_agent bigint, p_held boolean) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER AS $$
  UPDATE agents SET paused = p_held, held = p_held, version = version + 1
    WHERE (p_agent IS NULL OR id = p_agent) AND CASE WHEN p_held THEN NOT paused ELSE held END RETURNING id
$$;

-- Who is blocked, by a hash of the account, so that it outlives an erasure and names nobody. workspace '': everywhere.
CREATE TABLE blocks (
  hash      bytea NOT NULL,
  workspace text NOT NULL DEFAULT '',
  at        timestamptz NOT NULL,
  PRIMARY KEY (hash, workspace)
);
REVOKE ALL ON blocks FROM PUBLIC;

CREATE FUNCTION block_hash(p_platform text, p_realm text, p_user text) RETURNS bytea LANGUAGE sql IMMUTABLE
AS $$ SELECT sha256(convert_to(p_platform || E'\x1f' || p_realm || E'\x1f' || p_user, 'UTF8')) $$;

-- Blocks somebody or ends it. Returns whether that changed anything.
CREATE FUNCTION block(p_platform text, p_realm text, p_user text, p_workspace text, p_blocked boolean, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF p_blocked THEN
    INSERT INTO blocks (hash, workspace, at) VALUES (block_hash(p_platform, p_realm, p_user), p_workspace, p_now) ON CONFLICT DO NOTHING;
  ELSE
    DELETE FROM blocks WHERE hash = block_hash(p_platform, p_realm, p_user) AND workspace = p_workspace;
  END IF;
  RETURN FOUND;
END $$;

CREATE FUNCTION blocked(p_platform text, p_realm text, p_user text, p_workspace text) RETURNS boolean
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM blocks WHERE hash = block_hash(p_platform, p_realm, p_user) AND workspace IN ('', p_workspace))
$$;

-- An event of somebody blocked is taken for one that is in already: nothing is stored, nothing is answered, no timer fires.
CREATE FUNCTION refuse_blocked() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM blocks) AND EXISTS (
      SELECT 1 FROM places p JOIN identities i ON i.platform = p.platform AND i.realm = p.realm
        JOIN blocks b ON b.hash = block_hash(i.platform, i.realm, i.user_id) AND b.workspace IN ('', p.workspace)
      WHERE p.id = new.place_id AND i.agent_id = new.agent_id) THEN
    RETURN NULL;
  END IF;
  RETURN new;
END $$;
CREATE TRIGGER refuse_blocked BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse_blocked();

-- As `enter`, for a workspace's admin: whole are the places of that workspace alone, direct messages only of people who got the notice since
-- p_direct (null: of nobody).
-- Returns how many of the agent's places that are.
CREATE FUNCTION enter_workspace(p_agent bigint, p_platform text, p_realm text, p_workspace text, p_direct timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE here bigint[];
BEGIN
  SELECT coalesce(array_agg(p.id), '{}') INTO here FROM conversations c JOIN places p ON p.id = c.place_id
    WHERE c.agent_id = p_agent AND p.platform = p_platform AND p.realm = p_realm AND p_workspace <> '' AND p.workspace = p_workspace
      AND (p.kind <> 'direct' OR (SELECT a.noticed_at >= p_direct FROM agents a WHERE a.id = p_agent));
  PERFORM set_config('keepsake.agent', p_agent::text, true), set_config('keepsake.whole', here::text, true),
          set_config('keepsake.public', '{}', true), set_config('keepsake.shared', '{}', true),
          set_config('keepsake.writable', here::text, true);
  RETURN cardinality(here);
END $$;

-- The people whom a platform shows under a name; ids only.
CREATE FUNCTION people_called(p_platform text, p_realm text, p_name text) RETURNS TABLE (agent_id bigint, user_id text)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT coalesce(merged_into, agent_id), user_id FROM identities
  WHERE platform = p_platform AND realm = p_realm AND lower(display_name) = lower(p_name) ORDER BY user_id LIMIT 5
$$;

-- Model calls since a time of turns in one workspace, or with null of all; of one person, or with null of everybody. Sums only.
CREATE FUNCTION usage_of(p_agent bigint, p_platform text, p_workspace text, p_since timestamptz)
RETURNS TABLE (model text, people bigint, calls bigint, prompt_tokens bigint, cached_tokens bigint, completion_tokens bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT u.model, count(DISTINCT u.agent_id), count(*), sum(u.prompt_tokens)::bigint, sum(u.cached_tokens)::bigint, sum(u.completion_tokens)::bigint
  FROM usage u LEFT JOIN turns t ON t.id = u.turn_id LEFT JOIN places p ON p.id = t.place_id
  WHERE u.at >= p_since AND (p_agent IS NULL OR u.agent_id = p_agent)
    AND (p_workspace IS NULL OR (p.platform = p_platform AND p.workspace = p_workspace AND p.kind <> 'direct'))
  GROUP BY 1 ORDER BY 4 DESC, 1
$$;

-- The place of an import: as it is known, or made anew; what an old export says of a place that is known changes nothing. Null: the direct
-- message of somebody else, where nothing of this person's may ever be said.
CREATE FUNCTION import_place(p_platform text, p_realm text, p_workspace text, p_external text, p_kind text, p_name text, p_agent bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE found bigint; owner bigint;
BEGIN
  SELECT id, owner_id INTO found, owner FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external;
  IF owner <> p_agent THEN RETURN NULL; END IF;
  IF found IS NULL THEN
    INSERT INTO places (platform, realm, workspace, external_id, kind, name, owner_id)
      VALUES (p_platform, p_realm, p_workspace, p_external, p_kind, p_name, CASE WHEN p_kind = 'direct' THEN p_agent END) RETURNING id INTO found;
  END IF;
  PERFORM conversation_of(p_agent, found);
  RETURN found;
END $$;

-- How many people talk to the bot in a workspace.
CREATE FUNCTION people_in(p_platform text, p_workspace text) RETURNS bigint
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT count(DISTINCT c.agent_id) FROM conversations c JOIN places p ON p.id = c.place_id
  WHERE p.platform = p_platform AND p.workspace = p_workspace AND p_workspace <> ''
$$;

-- keeping ---------------------------------------------------------------------------------------------

ALTER TABLE agents ADD COLUMN noticed_at timestamptz;              -- when the notice of the first contact went out
GRANT UPDATE (noticed_at) ON agents TO keepsake_bot;
ALTER TABLE messages ADD COLUMN passing boolean NOT NULL DEFAULT false; -- said while memory was paused: for the running conversation alone
CREATE INDEX ON messages (agent_id) WHERE passing;
-- Whose words a derived row repeats, where they are somebody else's: such a row goes with its author, and after the time of quotes.
ALTER TABLE working_context ADD COLUMN author_id text NOT NULL DEFAULT '';
ALTER TABLE passages ADD COLUMN author_id text NOT NULL DEFAULT '';
CREATE INDEX ON working_context (author_id) WHERE author_id <> '';
CREATE INDEX ON passages (author_id) WHERE author_id <> '';
-- The message that a change came from, and for a summary the last position that it covers.
ALTER TABLE memory_log ADD COLUMN message_id bigint, ADD COLUMN covers bigint;
CREATE INDEX memory_log_summaries ON memory_log (target_id, id) WHERE target = 'summary';
ALTER TABLE conversations ADD COLUMN lost_at timestamptz;          -- the person can no longer read this place

-- What is asked before it is stored: sensitive things, until the person says yes or no or the time is over.
CREATE TABLE memory_requests (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id   bigint NOT NULL REFERENCES places,
  visibility text NOT NULL CHECK (visibility IN ('direct', 'private', 'public')),
  kind       text NOT NULL,                      -- the sensitive kind
  layer      text NOT NULL CHECK (layer IN ('working_context', 'archival_storage')),
  section    text NOT NULL DEFAULT '',
  replaces   bigint,                             -- the entry that it would take the place of
  content    text NOT NULL,
  tags       text[] NOT NULL DEFAULT '{}',
  messages   bigint[] NOT NULL DEFAULT '{}',     -- what it came from
  turn_id    bigint REFERENCES turns ON DELETE SET NULL,
  created_at timestamptz NOT NULL,
  until      timestamptz NOT NULL
);
CREATE INDEX ON memory_requests (agent_id);
CREATE INDEX ON memory_requests (turn_id);
CREATE INDEX ON memory_requests (until);
CALL protect('memory_requests', 'place');
GRANT SELECT, INSERT, DELETE ON memory_requests TO keepsake_bot;

-- Erasing a person with many messages looks up, for every row that goes, the rows that hang on it.
CREATE INDEX ON messages (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX ON passages (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX ON passages (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX ON working_context (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX ON timers (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX ON turns (conversation_id);
CREATE INDEX ON identities (merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX ON places (owner_id) WHERE owner_id IS NOT NULL;
-- The costs of a turn outlive it; a number is enough.
ALTER TABLE usage DROP CONSTRAINT usage_turn_id_fkey;
-- What retention looks for.
CREATE INDEX messages_quotes_by_time ON messages (created_at) WHERE kind = 'quote';
CREATE INDEX outbox_settled ON outbox (created_at) WHERE state IN ('sent', 'failed', 'withdrawn');
CREATE INDEX events_done ON events (done_at) WHERE status <> 0;

-- Erasures, again: with the queue's jobs, linked accounts, and whatever repeats the person's words in other agents' memory.

-- Whom an erasure concerned, by a keyed hash: so that a restored backup has it applied again, and so that nobody quotes them for a week.
CREATE TABLE erased_people (
  hash bytea PRIMARY KEY,
  at   timestamptz NOT NULL                      -- by this server's clock, as `identities.created_at`
);
REVOKE ALL ON erased_people FROM PUBLIC;

CREATE FUNCTION person_hash(p_key bytea, p_platform text, p_realm text, p_user text) RETURNS bytea LANGUAGE sql IMMUTABLE
AS $$ SELECT sha256(p_key || convert_to('person' || E'\x1f' || p_platform || E'\x1f' || p_realm || E'\x1f' || p_user, 'UTF8')) $$;

-- The columns through which a table's rows belong to an agent and go with it; found in the schema, so that a later table is not forgotten.
CREATE FUNCTION personal_columns() RETURNS TABLE (t text, c text) LANGUAGE sql STABLE AS $$
  SELECT r.relname::text, a.attname::text FROM pg_constraint k
  JOIN pg_class r ON r.oid = k.conrelid JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = k.conkey[1]
  WHERE k.contype = 'f' AND k.confrelid = 'keepsake.agents'::regclass AND k.confdeltype = 'c' AND cardinality(k.conkey) = 1
    AND r.relnamespace = 'keepsake'::regnamespace
  -- What hangs on other rows first, so that it goes at once instead of row by row.
  ORDER BY array_position(ARRAY['memory_log', 'outbox', 'messages', 'passages', 'working_context', 'events', 'timers', 'documents', 'turns', 'conversations', 'identities']::text[], r.relname::text) NULLS FIRST, 1, 2
$$;

-- Takes a message that is about to go out of the summary that covers it: the last summary made without it stands again, and what came after
-- is to be summed up anew, at the next turn, from recall storage. Returns whether a summary covered it.
CREATE FUNCTION unsummarise(p_conversation bigint, p_position bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE c conversations; base record; again bigint;
BEGIN
  SELECT * INTO c FROM conversations WHERE id = p_conversation;
  IF c.id IS NULL OR (c.summary = '' AND c.summary_tail = '') OR p_position >= c.fifo_start OR p_position < coalesce(c.summary_from, 1) THEN
    RETURN false;
  END IF;
  SELECT l.covers, k.after INTO base FROM memory_log l JOIN memory_log_content k ON k.log_id = l.id
    WHERE l.target = 'summary' AND l.target_id = p_conversation AND l.covers < p_position AND l.covers >= coalesce(c.summary_from, 1)
      AND k.after IS NOT NULL ORDER BY l.id DESC LIMIT 1;
  again := coalesce(base.covers + 1, c.summary_from, 1);
  UPDATE conversations SET summary = coalesce(base.after, ''), summary_tail = '', pending_from = least(again, coalesce(pending_from, again))
    WHERE id = p_conversation;
  DELETE FROM memory_log_content k USING memory_log l WHERE l.id = k.log_id AND l.target IN ('summary', 'conversation')
    AND l.target_id = p_conversation AND (l.covers IS NULL OR l.covers >= p_position);
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

-- What other agents hold of somebody's words: quotes, what was derived from them, results that show them, summaries that cover them,
-- quotes in events that wait. Their versions rise, so that a running turn that has read any of it starts its pass again. Returns the agents.
CREATE FUNCTION forget_author(p_authors text[], p_except bigint[], OUT total bigint, OUT touched bigint[]) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE n bigint; each record;
BEGIN
  touched := ARRAY(
    SELECT agent_id FROM messages WHERE kind = 'quote' AND author_id = ANY (p_authors)
    UNION SELECT agent_id FROM working_context WHERE author_id = ANY (p_authors)
    UNION SELECT agent_id FROM passages WHERE author_id = ANY (p_authors)
    UNION SELECT agent_id FROM events e WHERE e.status IN (0, 2) AND jsonb_typeof(e.payload->'quotes') = 'array' AND EXISTS (
      SELECT 1 FROM jsonb_array_elements(e.payload->'quotes') q WHERE q->>'author_id' = ANY (p_authors)));
  touched := ARRAY(SELECT unnest(touched) EXCEPT SELECT unnest(p_except));
  total := 0;
  IF touched = '{}' THEN RETURN; END IF;
  PERFORM 1 FROM agents WHERE id = ANY (touched) ORDER BY id FOR NO KEY UPDATE;
  FOR each IN SELECT DISTINCT ON (conversation_id) conversation_id, position FROM messages
              WHERE kind = 'quote' AND author_id = ANY (p_authors) AND agent_id = ANY (touched) ORDER BY conversation_id, position LOOP
    PERFORM unsummarise(each.conversation_id, each.position);
  END LOOP;
  PERFORM drop_repeated(touched,
    ARRAY(SELECT content FROM messages WHERE kind = 'quote' AND author_id = ANY (p_authors) AND agent_id = ANY (touched)),
    ARRAY(SELECT turn_id FROM working_context WHERE author_id = ANY (p_authors) AND agent_id = ANY (touched)
          UNION SELECT turn_id FROM passages WHERE author_id = ANY (p_authors) AND agent_id = ANY (touched)));
  DELETE FROM memory_log_content k USING memory_log l WHERE l.id = k.log_id AND l.agent_id = ANY (touched) AND (
      (l.target = 'working_context' AND l.target_id IN (SELECT id FROM working_context WHERE author_id = ANY (p_authors)))
      OR (l.target = 'passage' AND l.target_id IN (SELECT id FROM passages WHERE author_id = ANY (p_authors))));
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
    WHERE e.agent_id = ANY (touched) AND e.status IN (0, 2) AND jsonb_typeof(e.payload->'quotes') = 'array';
  UPDATE agents SET version = version + 1 WHERE id = ANY (touched);
END $$;

CREATE OR REPLACE FUNCTION erase_agent(p_agent bigint, p_actor text, p_hash_key bytea, p_now timestamptz) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE counts jsonb := '{}'; each record; n bigint; mine bigint[]; authors text[]; homes bigint[]; others bigint[];
BEGIN
  -- One at a time: two people who quote each other would wait for each other.
  PERFORM pg_advisory_xact_lock(hashtext('keepsake.erasure'));
  mine := ARRAY(SELECT p_agent UNION SELECT agent_id FROM identities WHERE merged_into = p_agent);
  PERFORM 1 FROM agents WHERE id = ANY (mine) ORDER BY id FOR UPDATE;
  authors := ARRAY(SELECT platform || ':' || realm || ':' || user_id FROM identities WHERE agent_id = ANY (mine) OR merged_into = ANY (mine));
  homes := ARRAY(SELECT id FROM places p WHERE owner_id = ANY (mine) AND NOT EXISTS (
    SELECT 1 FROM conversations c WHERE c.place_id = p.id AND NOT c.agent_id = ANY (mine)));
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
  SELECT f.total, f.touched INTO n, others FROM forget_author(authors, mine) f;
  counts := counts || jsonb_build_object('quotes', n);
  INSERT INTO erasures (at, actor, counts) VALUES (p_now, p_actor, counts);
  -- The other agents whose cached state held any of it, for the caller alone.
  RETURN counts || jsonb_build_object('touched', to_jsonb(others));
END $$;

-- What is left of an agent anywhere: the proof after an erasure. All zero, or the erasure failed. A job that runs ends by itself, as there
-- is nothing left to claim, and is not counted.
CREATE OR REPLACE FUNCTION residue(p_agent bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER STABLE AS $$
DECLARE counts jsonb := '{}'; each record; n bigint;
BEGIN
  FOR each IN SELECT r.relname::text AS t, a.attname::text AS c FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
      WHERE r.relnamespace = 'keepsake'::regnamespace AND r.relkind IN ('r', 'p') AND NOT a.attisdropped AND a.attnum > 0
        AND (a.attname = 'agent_id' OR EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conrelid = r.oid AND k.contype = 'f'
             AND k.confrelid = 'keepsake.agents'::regclass AND k.conkey = ARRAY[a.attnum])) ORDER BY 1, 2 LOOP
    EXECUTE format('SELECT count(*) FROM %I WHERE %I = $1', each.t, each.c) INTO n USING p_agent;
    counts := counts || jsonb_build_object(each.t, n + coalesce((counts->>each.t)::bigint, 0));
  END LOOP;
  SELECT count(*) INTO n FROM agents WHERE id = p_agent;
  counts := counts || jsonb_build_object('agents', n);
  SELECT count(*) INTO n FROM procrastinate.procrastinate_jobs WHERE status = 'todo' AND lock = 'agent:' || p_agent;
  RETURN counts || jsonb_build_object('jobs', n);
END $$;

-- Drops the hashes whose week is over, and places that nothing hangs on any more. Returns how many hashes.
CREATE OR REPLACE FUNCTION purge_erased(p_now timestamptz) RETURNS bigint
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

-- Which of these people (platform:realm:user, and their keyed hashes) were erased within the last week and have not come back: what they said
-- is quoted nowhere, although their platform still shows it.
CREATE FUNCTION erased_lately(p_authors text[], p_hashes bytea[]) RETURNS SETOF text
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT q.author FROM unnest(p_authors, p_hashes) q (author, hash) JOIN erased_people e ON e.hash = q.hash
  WHERE e.at > clock_timestamp() - interval '7 days'
    AND NOT EXISTS (SELECT 1 FROM identities i WHERE i.platform || ':' || i.realm || ':' || i.user_id = q.author)
$$;

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

-- Pausing ---------------------------------------------------------------------------------------------

-- Deletes what was said while memory was paused, before a time, but for the turn that runs. Returns how many messages.
CREATE FUNCTION drop_passing(p_agent bigint, p_before timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE n bigint;
BEGIN
  UPDATE outbox SET body = '' WHERE agent_id = p_agent AND state IN ('sent', 'failed', 'withdrawn') AND turn_id IN (
    SELECT turn_id FROM messages WHERE agent_id = p_agent AND passing AND created_at < p_before);
  DELETE FROM messages WHERE agent_id = p_agent AND passing AND created_at < p_before
    AND (turn_id IS NULL OR turn_id NOT IN (SELECT id FROM turns WHERE agent_id = p_agent AND state = 'running'));
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

CREATE FUNCTION note_resumed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  PERFORM drop_passing(new.id, 'infinity');
  RETURN NULL;
END $$;
CREATE TRIGGER note_resumed AFTER UPDATE OF paused ON agents
  FOR EACH ROW WHEN (old.paused AND NOT new.paused) EXECUTE FUNCTION note_resumed();

-- A turn that ran while its person resumed needed its own messages until here.
CREATE FUNCTION note_turn_over() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM messages m JOIN agents a ON a.id = m.agent_id WHERE m.agent_id = new.agent_id AND m.passing AND NOT a.paused) THEN
    PERFORM drop_passing(new.agent_id, 'infinity');
    UPDATE agents SET version = version + 1 WHERE id = new.agent_id;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER note_turn_over AFTER UPDATE OF state ON turns
  FOR EACH ROW WHEN (old.state = 'running' AND new.state <> 'running') EXECUTE FUNCTION note_turn_over();

-- Retention -------------------------------------------------------------------------------------------

-- Deletes of one kind what is older than a time, of at most p_agents people and p_rows rows of each, and skips people whose turn commits
-- right now. Returns whose, how many rows, and whether it may be seen in their prompt. Nothing returned: nothing is left to do.
CREATE FUNCTION retain(p_kind text, p_before timestamptz, p_agents integer, p_rows integer) RETURNS TABLE (agent_id bigint, removed bigint, seen boolean)
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE a bigint; t text; wanted text; target text;
BEGIN
  SELECT k.t, k.wanted, k.seen INTO t, wanted, seen FROM (VALUES
    ('messages', 'messages', 'created_at < $1 AND kind <> ''quote'' AND NOT passing', true),
    ('quotes', 'messages', 'created_at < $1 AND kind = ''quote''', true),
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
  -- A turn that runs still needs its own.
  IF t = 'messages' THEN wanted := wanted || ' AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.id = r.turn_id AND turns.state = ''running'')'; END IF;
  FOR a IN EXECUTE format('SELECT a.id FROM agents a WHERE EXISTS (SELECT 1 FROM %I r WHERE r.agent_id = a.id AND %s) LIMIT $2', t, wanted)
           USING p_before, p_agents LOOP
    PERFORM 1 FROM agents WHERE id = a FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    IF p_kind = 'passing' THEN
      removed := drop_passing(a, p_before);
    ELSE
      -- What others said is repeated in results, and in the calls that stored it.
      IF p_kind = 'quotes' THEN
        EXECUTE format('SELECT drop_repeated(ARRAY[$2], ARRAY(SELECT r.content FROM messages r WHERE r.agent_id = $2 AND %s LIMIT $3), ''{}'')', wanted)
          USING p_before, a, p_rows;
      ELSIF p_kind IN ('quotes_derived', 'quotes_stored') THEN
        EXECUTE format('SELECT drop_repeated(ARRAY[$2], ''{}'', ARRAY(SELECT r.turn_id FROM %I r WHERE r.agent_id = $2 AND %s LIMIT $3))', t, wanted)
          USING p_before, a, p_rows;
      END IF;
      -- The log repeats what it is about; that it was changed stays.
      target := (jsonb_build_object('messages', 'message', 'working_context', 'working_context', 'passages', 'passage', 'timers', 'timer'))->>t;
      IF target IS NOT NULL THEN
        EXECUTE format('DELETE FROM memory_log_content k USING memory_log l WHERE l.id = k.log_id AND l.agent_id = $2 AND l.target = $4 '
          'AND l.target_id = ANY (ARRAY(SELECT r.id FROM %I r WHERE r.agent_id = $2 AND %s LIMIT $3))', t, wanted)
          USING p_before, a, p_rows, target;
      END IF;
      EXECUTE format('DELETE FROM %1$I WHERE ctid = ANY (ARRAY(SELECT r.ctid FROM %1$I r WHERE r.agent_id = $2 AND %2$s LIMIT $3))', t, wanted)
        USING p_before, a, p_rows;
      GET DIAGNOSTICS removed = ROW_COUNT;
    END IF;
    IF seen AND removed > 0 THEN UPDATE agents SET version = version + 1 WHERE id = a; END IF;
    agent_id := a;
    IF removed > 0 THEN RETURN NEXT; END IF;
  END LOOP;
END $$;

-- Erasures are remembered as long as a backup may bring somebody back.
CREATE FUNCTION retain_erasures(p_before timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER AS $$
  WITH gone AS (DELETE FROM erased_people WHERE at < p_before RETURNING 1) SELECT count(*) FROM gone
$$;

-- Workspaces that are gone: the app was removed, and has not been put back. A workspace that is only unavailable is never here.
CREATE TABLE workspaces_left (
  platform  text NOT NULL,
  realm     text NOT NULL,
  workspace text NOT NULL,
  left_at   timestamptz NOT NULL,
  PRIMARY KEY (platform, realm, workspace)
);
REVOKE ALL ON workspaces_left FROM PUBLIC;

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

-- Erases what came from workspaces that were left before a time: every row of their places, of at most p_agents people. Returns whose.
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
    FOR t IN SELECT r.relname FROM pg_attribute x JOIN pg_class r ON r.oid = x.attrelid JOIN pg_attribute y ON y.attrelid = r.oid AND y.attname = 'agent_id'
             WHERE x.attname = 'place_id' AND r.relnamespace = 'keepsake'::regnamespace AND r.relkind = 'r'
             ORDER BY array_position(ARRAY['messages', 'events', 'outbox', 'turns', 'conversations']::text[], r.relname::text) NULLS FIRST LOOP
      EXECUTE format('DELETE FROM %I WHERE agent_id = $1 AND place_id = ANY ($2)', t) USING a, here;
    END LOOP;
    UPDATE agents SET version = version + 1 WHERE id = a;
    RETURN NEXT a;
  END LOOP;
END $$;

-- Places that a person can no longer read, or can again: what came from there is used nowhere meanwhile, not even in their direct message.
-- p_externals null: every place of the workspace (they left it, or came back). Returns the person's agent where anything changed.
CREATE FUNCTION access_changed(p_platform text, p_realm text, p_user text, p_workspace text, p_externals text[], p_lost boolean, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE a bigint;
BEGIN
  a := known_agent(p_platform, p_realm, p_user);
  IF a IS NULL THEN RETURN NULL; END IF;
  PERFORM 1 FROM agents WHERE id = a FOR NO KEY UPDATE;
  UPDATE conversations c SET lost_at = CASE WHEN p_lost THEN p_now END FROM places p
    WHERE p.id = c.place_id AND c.agent_id = a AND p.platform = p_platform AND p.realm = p_realm AND p.kind <> 'direct'
      AND CASE WHEN p_externals IS NULL THEN p_workspace <> '' AND p.workspace = p_workspace ELSE p.external_id = ANY (p_externals) OR EXISTS (SELECT 1 FROM places up WHERE up.id = p.parent_id AND up.external_id = ANY (p_externals)) END
      AND (c.lost_at IS NULL) = p_lost;
  IF NOT FOUND THEN RETURN NULL; END IF;
  UPDATE agents SET version = version + 1 WHERE id = a;
  RETURN a;
END $$;

-- What a platform says of a place now, where the place is known: a channel that turned private is private at once, whoever speaks next.
CREATE FUNCTION place_changed(p_platform text, p_realm text, p_workspace text, p_external text, p_kind text, p_name text, p_parent text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external) THEN
    PERFORM place_of(p_platform, p_realm, p_workspace, p_external, p_kind, p_name, p_parent, NULL);
  END IF;
END $$;

-- Rule 5 of the design, as before, without the places that the person can no longer read. Where they speak they can read.
CREATE OR REPLACE FUNCTION enter(p_agent bigint, p_place bigint, p_everything boolean DEFAULT false) RETURNS void
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
        WHERE c.agent_id = p_agent AND c.lost_at IS NULL AND (crosses OR (p.platform = here.platform AND p.realm = here.realm));
      whole := array_append(whole, p_place);
    ELSE
      whole := ARRAY[p_place];
      SELECT coalesce(array_agg(p.id) FILTER (WHERE p.kind = 'public' AND p.workspace = here.workspace), '{}'),
             coalesce(array_agg(p.id) FILTER (WHERE p.workspace = here.workspace OR p.owner_id = p_agent), '{}')
        INTO public_now, shared FROM conversations c JOIN places p ON p.id = c.place_id
        WHERE c.agent_id = p_agent AND c.lost_at IS NULL AND p.platform = here.platform AND p.realm = here.realm;
    END IF;
    writable := ARRAY[p_place];
  END IF;
  whole := array_remove(coalesce(whole, '{}'), NULL);
  PERFORM set_config('keepsake.agent', p_agent::text, true), set_config('keepsake.whole', whole::text, true),
          set_config('keepsake.public', public_now::text, true), set_config('keepsake.shared', shared::text, true),
          set_config('keepsake.writable', array_remove(coalesce(writable, '{}'), NULL)::text, true);
END $$;
