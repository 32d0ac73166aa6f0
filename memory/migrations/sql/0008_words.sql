-- Run by the owner role.

-- The words of an event ---------------------------------------------------------------------------------

-- What stays of an event without anything that anybody said: when, in answer to which message, and of which timer. A list of what stays, so
-- that a payload's later part is not forgotten.
CREATE FUNCTION wordless(p_payload jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(p_payload)
  WHERE key IN ('addressed', 'at', 'author_id', 'message_id', 'timer', 'timer_id', 'due_at', 'every', 'late')
$$;

-- An event that is done or cancelled holds no words, in whatever way it ended: what was answered stands in recall storage, and a second copy
-- would have to be erased apart. What waits holds them, and so does a dead letter, for its replay.
CREATE FUNCTION empty_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  new.payload := keepsake.wordless(new.payload);
  RETURN new;
END $$;
CREATE TRIGGER empty_ended BEFORE INSERT OR UPDATE ON events FOR EACH ROW WHEN (new.status IN (1, 3)) EXECUTE FUNCTION empty_ended();
DROP TRIGGER drop_images ON events;
DROP FUNCTION drop_images();

-- What earlier versions left standing.
UPDATE events SET payload = wordless(payload) WHERE status IN (1, 3) AND payload <> wordless(payload);

-- Whoever looks for words looks where words are, and asks for no status.
DROP INDEX events_by_message;
CREATE INDEX events_by_message ON events (place_id, (payload->>'message_id')) WHERE payload ? 'text';
CREATE INDEX events_quoting ON events (agent_id) WHERE payload ? 'quotes';

-- Ends a turn inside its last step, under the epoch; a turn that is done has raised the version in commit_step just before. Returns whether
-- more waits; if not, the wake flag is down. Null: stale epoch, nothing was done.
CREATE OR REPLACE FUNCTION finish_turn(p_agent bigint, p_turn bigint, p_epoch bigint, p_state text, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE more boolean;
BEGIN
  PERFORM 1 FROM agents WHERE id = p_agent AND epoch = p_epoch FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  UPDATE events SET status = CASE p_state WHEN 'done' THEN 1 WHEN 'cancelled' THEN 3 ELSE 2 END, done_at = p_now
    WHERE turn_id = p_turn AND status = 0;
  UPDATE turns SET state = p_state, finished_at = p_now WHERE id = p_turn AND state = 'running';
  more := EXISTS (SELECT 1 FROM events WHERE agent_id = p_agent AND status = 0);
  UPDATE agents SET wake = more, version = version + (p_state <> 'done')::integer WHERE id = p_agent;
  RETURN more;
END $$;

-- Where a message of a platform stands: in events that hold its words, in messages, or nowhere any more. One row an event or message.
CREATE OR REPLACE FUNCTION locate(p_platform text, p_realm text, p_external text, p_ids text[])
RETURNS TABLE (agent_id bigint, place_id bigint, event_id bigint, message_id bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH here AS (SELECT id FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external)
  SELECT e.agent_id, e.place_id, e.id, NULL::bigint FROM events e JOIN here ON e.place_id = here.id
    WHERE e.payload->>'message_id' = ANY (p_ids) AND e.payload ? 'text' AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.event_id = e.id)
  UNION ALL
  SELECT m.agent_id, m.place_id, m.event_id, m.id FROM messages m JOIN here ON m.place_id = here.id WHERE m.platform_id = ANY (p_ids)
$$;

-- Where messages of a platform stand as quotes: in messages, and in events.
CREATE OR REPLACE FUNCTION locate_quotes(p_platform text, p_realm text, p_origins text[])
RETURNS TABLE (agent_id bigint, place_id bigint, event_id bigint, message_id bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT m.agent_id, m.place_id, m.event_id, m.id FROM messages m JOIN places p ON p.id = m.place_id
    WHERE m.kind = 'quote' AND m.platform_id COLLATE "C" = ANY (p_origins) AND p.platform = p_platform AND p.realm = p_realm
  UNION ALL
  SELECT e.agent_id, e.place_id, e.id, NULL::bigint FROM events e JOIN places p ON p.id = e.place_id
    WHERE e.payload ? 'quotes' AND p.platform = p_platform AND p.realm = p_realm
      AND EXISTS (SELECT 1 FROM jsonb_array_elements(e.payload->'quotes') q WHERE q->>'origin' = ANY (p_origins))
  ORDER BY 1, 4
$$;

-- The newest messages of a channel that stand anywhere as messages, as quotes or in events; ids alone.
CREATE OR REPLACE FUNCTION kept_messages(p_platform text, p_realm text, p_external text, p_limit integer) RETURNS SETOF text
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH here AS (SELECT id FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external),
  found AS (
    SELECT m.platform_id AS id FROM messages m JOIN here ON m.place_id = here.id WHERE m.platform_id IS NOT NULL AND m.kind <> 'quote'
    UNION
    SELECT e.payload->>'message_id' FROM events e JOIN here ON e.place_id = here.id WHERE e.payload ? 'text' AND e.payload->>'message_id' IS NOT NULL
    UNION
    SELECT substr(m.platform_id, length(p_external) + 2) FROM messages m JOIN places p ON p.id = m.place_id
      WHERE m.kind = 'quote' AND p.platform = p_platform AND p.realm = p_realm
        AND m.platform_id COLLATE "C" >= p_external || '/' AND m.platform_id COLLATE "C" < p_external || '0')
  SELECT id FROM found ORDER BY length(id) DESC, id COLLATE "C" DESC LIMIT p_limit
$$;

-- Takes messages that are about to go out of every summary that covers them. In the log: also of conversations that /fresh has ended since.
-- In slot 0: the last summary made without them stands again, and what came after is to be summed up anew, at the next turn, from recall
-- storage. Returns whether the one in slot 0 covered any.
DROP FUNCTION unsummarise(bigint, bigint);
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
DROP INDEX memory_log_summaries;
CREATE INDEX memory_log_summaries ON memory_log (target_id, id) WHERE target IN ('summary', 'conversation');

-- What other agents hold of somebody's words: quotes, what was derived from them, results that show them, summaries that cover them, quotes
-- in events. Their versions rise, so that a running turn that has read any of it starts its pass again. Returns the agents.
CREATE OR REPLACE FUNCTION forget_author(p_authors text[], p_except bigint[], OUT total bigint, OUT touched bigint[]) LANGUAGE plpgsql SECURITY DEFINER AS $$
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

-- Deletes what was said while memory was paused, before a time, but for the turn that runs; a dead letter of it has nothing left to replay.
-- Returns how many messages.
CREATE OR REPLACE FUNCTION drop_passing(p_agent bigint, p_before timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE n bigint;
BEGIN
  UPDATE outbox SET body = '' WHERE agent_id = p_agent AND state IN ('sent', 'failed', 'withdrawn') AND turn_id IN (
    SELECT turn_id FROM messages WHERE agent_id = p_agent AND passing AND created_at < p_before);
  UPDATE events SET status = 3 WHERE agent_id = p_agent AND status = 2 AND id IN (
    SELECT event_id FROM messages WHERE agent_id = p_agent AND passing AND created_at < p_before);
  DELETE FROM messages WHERE agent_id = p_agent AND passing AND created_at < p_before
    AND (turn_id IS NULL OR turn_id NOT IN (SELECT id FROM turns WHERE agent_id = p_agent AND state = 'running'));
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

-- Deletes of one kind what is older than a time, of at most p_agents people and p_rows rows of each, and skips people whose turn commits
-- right now. Returns whose, how many rows, and whether it may be seen in their prompt. Nothing returned: nothing is left to do.
CREATE OR REPLACE FUNCTION retain(p_kind text, p_before timestamptz, p_agents integer, p_rows integer) RETURNS TABLE (agent_id bigint, removed bigint, seen boolean)
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE a bigint; t text; wanted text; target text;
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

-- Whose words are not quoted ----------------------------------------------------------------------------

-- Which of these people (platform:realm:user) are quoted nowhere, although their platform shows what they said: who was erased within the last
-- week and has not come back, whose memory is paused, and who is blocked in this workspace. p_speaker: with their own words people bring along
-- what they like, except where they were erased. p_hash_key null: nobody can have been erased.
DROP FUNCTION erased_lately(text[], bytea[]);
CREATE FUNCTION not_quoted(p_authors text[], p_speaker text, p_workspace text, p_hash_key bytea) RETURNS SETOF text
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH asked AS (
    SELECT author, split_part(author, ':', 1) AS platform, split_part(author, ':', 2) AS realm, substr(author, length(split_part(author, ':', 1))
      + length(split_part(author, ':', 2)) + 3) AS user_id FROM unnest(p_authors) author)
  SELECT q.author FROM asked q LEFT JOIN identities i USING (platform, realm, user_id) LEFT JOIN agents a ON a.id = coalesce(i.merged_into, i.agent_id)
  WHERE (i.user_id IS NULL AND EXISTS (SELECT 1 FROM erased_people e
      WHERE e.hash = person_hash(p_hash_key, q.platform, q.realm, q.user_id) AND e.at > clock_timestamp() - interval '7 days'))
    OR (a.paused AND q.author <> p_speaker)
    OR blocked(q.platform, q.realm, q.user_id, p_workspace)
$$;

-- The proof ---------------------------------------------------------------------------------------------

CREATE INDEX memory_log_content_quoting ON memory_log_content ((row_before->>'author_id')) WHERE row_before->>'author_id' <> '';
CREATE INDEX ON memory_log (target_id) WHERE target IN ('working_context', 'passage');

-- Under which names an agent's person is quoted (platform:realm:user); to be asked before an erasure, for the proof after it.
CREATE FUNCTION authors_of(p_agent bigint) RETURNS text[] LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT coalesce(array_agg(platform || ':' || realm || ':' || user_id), '{}') FROM identities WHERE agent_id = p_agent OR merged_into = p_agent
    OR agent_id IN (SELECT i.agent_id FROM identities i WHERE i.merged_into = p_agent)
$$;

-- What is left of an agent anywhere, and of its person's words in anybody's rows: the proof after an erasure. All zero, or the erasure failed.
-- It asks no eraser where it looked: every column called author_id and every JSON column of every table is searched for the names. A job that
-- runs ends by itself, as there is nothing left to claim, and is not counted.
DROP FUNCTION residue(bigint);
CREATE FUNCTION residue(p_agent bigint, p_authors text[] DEFAULT '{}') RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER STABLE AS $$
DECLARE counts jsonb := '{}'; each record; n bigint; named CONSTANT text[] := ARRAY(SELECT to_jsonb(a)::text FROM unnest(p_authors) a);
BEGIN
  FOR each IN SELECT r.relname::text AS t, a.attname::text AS c,
      CASE WHEN a.attname = 'author_id' THEN '%I = ANY ($2)'
        WHEN a.atttypid IN ('json'::regtype, 'jsonb'::regtype) THEN 'EXISTS (SELECT 1 FROM unnest($3) name WHERE position(name IN %I::text) > 0)'
        ELSE '%I = $1' END AS found
    FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
    WHERE r.relnamespace = 'keepsake'::regnamespace AND r.relkind IN ('r', 'p') AND NOT a.attisdropped AND a.attnum > 0
      AND (a.attname IN ('agent_id', 'author_id') OR a.atttypid IN ('json'::regtype, 'jsonb'::regtype)
        OR EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conrelid = r.oid AND k.contype = 'f'
             AND k.confrelid = 'keepsake.agents'::regclass AND k.conkey = ARRAY[a.attnum])) ORDER BY 1, 2 LOOP
    EXECUTE format('SELECT count(*) FROM %I WHERE ' || each.found, each.t, each.c) INTO n USING p_agent, p_authors, named;
    counts := counts || jsonb_build_object(each.t, n + coalesce((counts->>each.t)::bigint, 0));
  END LOOP;
  SELECT count(*) INTO n FROM agents WHERE id = p_agent;
  counts := counts || jsonb_build_object('agents', n);
  SELECT count(*) INTO n FROM procrastinate.procrastinate_jobs WHERE status = 'todo' AND lock = 'agent:' || p_agent;
  RETURN counts || jsonb_build_object('jobs', n);
END $$;
