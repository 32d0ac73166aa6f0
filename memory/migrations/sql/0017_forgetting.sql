-- Run by the owner role.

-- Where every text came from ----------------------------------------------------------------------------

-- What a turn had before its eyes when it began, in its own row: positions of its conversation (the queue, and what the summary covers) and
-- entries of the working context. What its searches brought is in `fetched`. Null: not known, an import or an older turn; then anything.
ALTER TABLE turns ADD COLUMN in_view int8multirange, ADD COLUMN entries_in_view bigint[] NOT NULL DEFAULT '{}';
-- A window edge for every message of the queue is what those columns replace.
ALTER TABLE sources DROP CONSTRAINT sources_role_check;
ALTER TABLE sources ADD CONSTRAINT sources_role_check CHECK (role IN ('trigger', 'quote', 'window'));
-- To whom (platform:realm:user) a reply of the bot was said that somebody else's message brought along as a quote.
ALTER TABLE messages ADD COLUMN said_to text NOT NULL DEFAULT '';
CREATE INDEX ON messages (said_to) WHERE said_to <> '';
CREATE INDEX outbox_said ON outbox (platform, channel, platform_id) WHERE platform_id IS NOT NULL;

-- To whom the bot said these messages (`channel/message`), and no row for those it did not say.
CREATE FUNCTION said_to(p_platform text, p_origins text[]) RETURNS TABLE (origin text, author_id text)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT q.origin, coalesce(
    (SELECT m.author_id FROM messages m WHERE m.turn_id = o.turn_id AND m.role = 'user' AND m.kind = 'message' AND m.author_id <> '' ORDER BY m.id DESC LIMIT 1),
    (SELECT i.platform || ':' || i.realm || ':' || i.user_id FROM identities i WHERE (i.agent_id = o.agent_id OR i.merged_into = o.agent_id)
       AND i.platform = p_platform ORDER BY i.user_id LIMIT 1), '')
  FROM unnest(p_origins) q (origin) JOIN outbox o ON o.platform = p_platform AND o.channel = split_part(q.origin, '/', 1)
    AND o.platform_id = substr(q.origin, length(split_part(q.origin, '/', 1)) + 2)
$$;

-- Which of these quotes (by their place in the list, from 1) were said before their author was erased: they are quoted no more, although their
-- platform still shows them and the author may be back.
CREATE FUNCTION said_before_erasure(p_authors text[], p_times timestamptz[], p_hash_key bytea) RETURNS SETOF integer
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT q.nth::integer FROM unnest(p_authors, p_times) WITH ORDINALITY q (author, at, nth) JOIN erased_people e
    ON e.hash = person_hash(p_hash_key, split_part(q.author, ':', 1), split_part(q.author, ':', 2),
      substr(q.author, length(split_part(q.author, ':', 1)) + length(split_part(q.author, ':', 2)) + 3))
  WHERE q.author <> '' AND q.at <= e.at
$$;

-- The walk ----------------------------------------------------------------------------------------------

-- Words that everybody uses, in the form that texts are indexed in: having them in common shows nothing. The most usual ones of the languages
-- most used, and what is said of memories and messages.
CREATE FUNCTION common_words() RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = keepsake, public, pg_temp AS $$
  SELECT search_words('about after again agree all already also always and another answer any anything ask asked back bad because been before
    best better big call called came can come could day did different does done down each even ever every everything feel few find fine first for
    forget found friend from gave get give given glad go going good got great had happy has have hear hello help her here hey him his how idea into
    its just keep kind know knows last later least less let like likes listen little live lives long look lot love made make many may maybe mean
    message might more most much must name named need never new next nice no note noted nothing now number off often okay old once one only open other
    our out over own part people person place please put question quite really reason remember remind reminder reply right said same saw say says see
    seem set she should show since small some something soon sorry still stop store stored such sure take talk tell than thank thanks that the their
    them then there these they thing things think this those thought through time timer today told tomorrow too took try two under until upon use used
    user very want wants was way well went were what when where which while who why will wish with word words work would write written wrote yes
    yesterday yet you your
    aber alle alles also auch auf aus bei bin bis bist damit dann das dass dein dem den der des dich die dir doch dort durch ein eine einem einen einer
    eines einfach etwas euch für gerne gibt gut habe haben hallo hast hat hatte heute hier ich ihm ihn ihr immer ist jetzt kann kein keine kennst mal
    mehr mein meine meinem meinen meiner mich mir mit muss nach nein nicht nichts noch nur oder schon sehr sein seine sich sie sind so und uns unser
    vom von vor war was weil wenn wer wie wieder wir wird wurde zum zur
    avec bien c''est cette comme dans des elle est était faire fait ils les leur lui mais mes moi mon nous oui par pas plus pour quand que quelle qui sans
    ses son suis sur tous tout très une vous votre como con cuando del donde ella ellos era esta este estoy hay hola las los más muy nada nos para pero
    por porque puede qué quien ser sin sobre son soy sus también tengo tiene todo una usted yo anche che come cosa della delle dove gli hai mia mio molto
    non nella perché più quando questa questo sei sono sua suo tutto uma não você isso isto meu minha het een dat niet voor van met zijn och att det som',
    true)
$$;

-- Of texts that go, the words by which what was made of them is known: words, names and numbers that stand in nothing else that people said to
-- this agent. What those others have, a later text may just as well have from there.
CREATE FUNCTION rare_words(p_agent bigint, p_texts text[], p_gone bigint[]) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE found text[]; kept text[];
BEGIN
  found := ARRAY(SELECT DISTINCT w FROM unnest(p_texts) t, unnest(search_words(left(t, 100000), false)) w
    WHERE length(w) >= 3 OR w ~ '[0-9]{2}' OR w ~ '^[^\x01-\x7f]{2}$');
  found := ARRAY(SELECT unnest(found) EXCEPT SELECT unnest(common_words()));
  IF cardinality(found) <= 200 THEN
    RETURN ARRAY(SELECT w FROM unnest(found) w WHERE NOT EXISTS (
      SELECT FROM messages m WHERE m.agent_id = p_agent AND m.tsv @@ search_query(w) AND m.searchable AND m.role = 'user' AND m.id <> ALL (p_gone)));
  END IF;
  kept := ARRAY(SELECT DISTINCT w FROM messages m, unnest(tsvector_to_array(m.tsv)) w
    WHERE m.agent_id = p_agent AND m.searchable AND m.role = 'user' AND m.id <> ALL (p_gone));
  RETURN ARRAY(SELECT unnest(found) EXCEPT SELECT unnest(kept));
END $$;

CREATE FUNCTION has_rare(p_words text[], p_text text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT p_text <> '' AND EXISTS (SELECT FROM unnest(search_words(left(p_text, 100000), true)) w WHERE w = ANY (p_words))
$$;

-- How far forgetting some rows of an agent reaches. Gone with them is what names them as a strong source: what a message was the trigger of
-- or is quoted in, the replies to it and its turn's timers, the replies of turns whose search found it. And, copy after copy, what was made
-- with any of it in view and shares a rare word, name or number with it. What was made with it in view and shares none is listed for the
-- person (`maybe`, as m1, w2). `turns`: those that it began; `made_in`: those whose inner workings show it.
-- p_words: whose words are followed instead of the rows' own, and then nothing else is strong.
CREATE FUNCTION forget_reach(p_agent bigint, p_messages bigint[], p_entries bigint[], p_passages bigint[], p_timers bigint[],
  p_words text[] DEFAULT NULL, OUT messages bigint[], OUT entries bigint[], OUT passages bigint[], OUT timers bigint[], OUT turns bigint[],
  OUT made_in bigint[], OUT rare text[], OUT maybe text[])
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
#variable_conflict use_variable
DECLARE
  size integer; seen bigint[]; watched bigint[]; looked bigint[]; texts text[]; strong CONSTANT boolean := p_words IS NULL;
BEGIN
  messages := p_messages; entries := p_entries; passages := p_passages; timers := p_timers;
  turns := ARRAY(SELECT DISTINCT m.turn_id FROM messages m
    WHERE m.id = ANY (p_messages) AND m.agent_id = p_agent AND m.role = 'user' AND m.kind IN ('message', 'event') AND m.turn_id IS NOT NULL);
  looked := ARRAY(SELECT f.turn_id FROM fetched f WHERE f.message_id = ANY (p_messages) AND f.agent_id = p_agent
    UNION SELECT f.turn_id FROM fetched f WHERE f.passage_id = ANY (p_passages) AND f.agent_id = p_agent);
  messages := messages || ARRAY(SELECT m.id FROM messages m WHERE m.agent_id = p_agent AND m.role = 'assistant' AND m.kind = 'message'
    AND m.turn_id = ANY (turns || CASE WHEN strong THEN looked ELSE '{}' END) AND m.id <> ALL (p_messages));
  IF strong THEN
    entries := ARRAY(SELECT unnest(entries) UNION SELECT s.entry_id FROM sources s
      WHERE s.message_id = ANY (p_messages) AND s.agent_id = p_agent AND s.role <> 'window' AND s.entry_id IS NOT NULL);
    passages := ARRAY(SELECT unnest(passages) UNION SELECT s.passage_id FROM sources s
      WHERE s.message_id = ANY (p_messages) AND s.agent_id = p_agent AND s.role <> 'window' AND s.passage_id IS NOT NULL);
    timers := ARRAY(SELECT unnest(timers) UNION SELECT t.id FROM timers t WHERE t.agent_id = p_agent AND t.turn_id = ANY (turns));
  END IF;
  LOOP
    size := cardinality(messages) + cardinality(entries) + cardinality(passages) + cardinality(timers);
    -- The same words again where somebody's message brought them along: a reply of the bot's, or the person's own message.
    messages := ARRAY(SELECT unnest(messages) UNION SELECT m.id FROM messages m
      WHERE m.agent_id = p_agent AND m.kind = 'quote' AND m.platform_id COLLATE "C" = ANY (origins_of(p_agent, messages)));
    -- What a timer of them was for is said by the line with which it fired.
    messages := ARRAY(SELECT unnest(messages) UNION SELECT m.id FROM messages m JOIN events e ON e.id = m.event_id
      WHERE e.agent_id = p_agent AND cardinality(timers) > 0 AND e.payload->>'timer_id' = ANY (timers::text[]));
    texts := coalesce(p_words, ARRAY(
      SELECT m.content FROM messages m WHERE m.id = ANY (messages) AND m.agent_id = p_agent
      UNION ALL SELECT w.content FROM working_context w WHERE w.id = ANY (entries) AND w.agent_id = p_agent
      UNION ALL SELECT p.content FROM passages p WHERE p.id = ANY (passages) AND p.agent_id = p_agent
      UNION ALL SELECT t.purpose FROM timers t WHERE t.id = ANY (timers) AND t.agent_id = p_agent
      UNION ALL SELECT k.after FROM memory_log l JOIN memory_log_content k ON k.log_id = l.id
        WHERE l.agent_id = p_agent AND l.turn_id = ANY (turns) AND k.after IS NOT NULL AND l.target IN ('working_context', 'passage', 'timer')));
    rare := rare_words(p_agent, texts, messages);
    watched := ARRAY(
      SELECT unnest(looked)
      UNION SELECT t.id FROM (SELECT m.conversation_id AS c, range_agg(int8range(m.position, m.position, '[]')) AS r, min(m.created_at) AS since
          FROM messages m WHERE m.id = ANY (messages) AND m.agent_id = p_agent GROUP BY 1) gone
        JOIN turns t ON t.agent_id = p_agent AND CASE WHEN t.in_view IS NULL THEN t.started_at >= gone.since ELSE t.conversation_id = gone.c AND t.in_view && gone.r END
      UNION SELECT t.id FROM turns t WHERE t.agent_id = p_agent AND cardinality(entries) > 0 AND t.entries_in_view && entries
      UNION SELECT f.turn_id FROM fetched f WHERE f.agent_id = p_agent AND (f.message_id = ANY (messages) OR f.passage_id = ANY (passages))
      -- The tags of archival storage are in every prompt.
      UNION SELECT t.id FROM passages p JOIN turns t ON t.agent_id = p_agent AND t.started_at >= p.created_at
        WHERE p.id = ANY (passages) AND p.agent_id = p_agent AND p.tags <> '{}'
      -- Whatever a function showed it in (a list of timers, say), its result has the words.
      UNION SELECT m.turn_id FROM messages m WHERE m.agent_id = p_agent AND m.kind = 'result' AND rare <> '{}' AND m.turn_id IS NOT NULL
        AND EXISTS (SELECT FROM unnest(tsvector_to_array(m.tsv)) w WHERE w = ANY (rare)));
    seen := ARRAY(
      SELECT unnest(turns || watched)
      UNION SELECT m.turn_id FROM messages m WHERE m.id = ANY (messages) AND m.turn_id IS NOT NULL
      UNION SELECT w.turn_id FROM working_context w WHERE w.id = ANY (entries) AND w.turn_id IS NOT NULL
      UNION SELECT p.turn_id FROM passages p WHERE p.id = ANY (passages) AND p.turn_id IS NOT NULL);
    IF rare <> '{}' THEN
      messages := ARRAY(SELECT unnest(messages) UNION SELECT m.id FROM messages m WHERE m.agent_id = p_agent AND m.turn_id = ANY (seen)
        AND ((m.role = 'assistant' AND m.kind = 'message') OR m.kind = 'event') AND has_rare(rare, m.content));
      entries := ARRAY(SELECT unnest(entries) UNION SELECT w.id FROM working_context w
        WHERE w.agent_id = p_agent AND w.turn_id = ANY (seen) AND has_rare(rare, w.content));
      passages := ARRAY(SELECT unnest(passages) UNION SELECT p.id FROM passages p WHERE p.agent_id = p_agent AND p.turn_id = ANY (seen)
        AND has_rare(rare, p.content || ' ' || array_to_string(p.tags, ' ')));
      timers := ARRAY(SELECT unnest(timers) UNION SELECT t.id FROM timers t
        WHERE t.agent_id = p_agent AND t.turn_id = ANY (seen) AND has_rare(rare, t.purpose || ' ' || t.name));
    END IF;
    EXIT WHEN size = cardinality(messages) + cardinality(entries) + cardinality(passages) + cardinality(timers);
  END LOOP;
  made_in := ARRAY(
    SELECT unnest(turns || looked)
    UNION SELECT w.turn_id FROM working_context w WHERE w.id = ANY (entries) AND w.turn_id IS NOT NULL
    UNION SELECT p.turn_id FROM passages p WHERE p.id = ANY (passages) AND p.turn_id IS NOT NULL
    UNION SELECT t.turn_id FROM timers t WHERE t.id = ANY (timers) AND t.turn_id IS NOT NULL
    UNION SELECT m.turn_id FROM messages m WHERE m.id = ANY (messages) AND m.role = 'assistant' AND m.turn_id IS NOT NULL
    UNION SELECT m.turn_id FROM messages m WHERE m.agent_id = p_agent AND m.turn_id = ANY (seen) AND rare <> '{}'
      AND (m.kind IN ('call', 'result', 'monologue') OR m.calls IS NOT NULL) AND has_rare(rare, m.content || ' ' || coalesce(words_of(m.calls), '')));
  maybe := ARRAY(
    SELECT 'w' || w.id FROM working_context w WHERE w.agent_id = p_agent AND w.id <> ALL (entries) AND (w.turn_id = ANY (watched)
      OR EXISTS (SELECT FROM sources s WHERE s.entry_id = w.id AND s.message_id = ANY (messages)))
    UNION ALL SELECT 'a' || p.id FROM passages p WHERE p.agent_id = p_agent AND p.id <> ALL (passages) AND p.document_id IS NULL AND (p.turn_id = ANY (watched)
      OR EXISTS (SELECT FROM sources s WHERE s.passage_id = p.id AND s.message_id = ANY (messages)))
    UNION ALL SELECT 't' || t.id FROM timers t WHERE t.agent_id = p_agent AND t.id <> ALL (timers) AND t.turn_id = ANY (looked));
END $$;

-- The words of calls, whose arguments are JSON within JSON: escapes and quotation marks are no words.
CREATE FUNCTION words_of(p_calls jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN (SELECT string_agg(coalesce((c->>'arguments')::jsonb::text, ''), ' ') FROM jsonb_array_elements(p_calls) c);
EXCEPTION WHEN OTHERS THEN
  RETURN p_calls::text;
END $$;

-- Under which ids (`channel/message`) messages of an agent are quoted elsewhere: the person's own, and the replies of the bot.
CREATE FUNCTION origins_of(p_agent bigint, p_messages bigint[]) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT ARRAY(
    SELECT (p.external_id || '/' || m.platform_id) COLLATE "C" FROM messages m JOIN places p ON p.id = m.place_id
      WHERE m.id = ANY (p_messages) AND m.agent_id = p_agent AND m.kind = 'message' AND m.platform_id IS NOT NULL
    UNION SELECT o.channel || '/' || o.platform_id FROM messages m JOIN outbox o ON o.turn_id = m.turn_id
      WHERE m.id = ANY (p_messages) AND m.agent_id = p_agent AND m.role = 'assistant' AND o.platform_id IS NOT NULL)
$$;

-- The one place where words go. Takes rows of an agent out with all that repeats them, and then the same words out of other agents whose
-- people quoted them. p_conversations go as a whole, with their summaries. p_note: stands where the messages were, which are kept as the shell
-- of a turn. p_elsewhere: false where only this agent's time for them is over. p_unsent: replies that wait to be sent are taken back; else
-- they are still owed, and emptied when they are sent (`empty_sent`). Returns the other agents that held something of it.
CREATE FUNCTION forget_rows(p_agent bigint, p_messages bigint[], p_entries bigint[], p_passages bigint[], p_timers bigint[], p_documents bigint[],
  p_conversations bigint[], p_turns bigint[], p_made_in bigint[], p_rare text[], p_note text DEFAULT NULL, p_elsewhere boolean DEFAULT true,
  p_unsent boolean DEFAULT true)
RETURNS bigint[] LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE origins text[]; inner_turns bigint[]; logged bigint[]; kept bigint[];
BEGIN
  origins := origins_of(p_agent, p_messages);
  inner_turns := ARRAY(SELECT unnest(p_turns) UNION SELECT unnest(p_made_in));
  PERFORM unsummarise(covered.c, covered.positions) FROM (
    SELECT conversation_id AS c, array_agg(position) AS positions FROM messages WHERE id = ANY (p_messages) AND agent_id = p_agent GROUP BY 1) covered;
  DELETE FROM memory_requests r WHERE r.agent_id = p_agent AND (r.messages && p_messages OR r.turn_id = ANY (p_turns)
    OR (p_rare <> '{}' AND has_rare(p_rare, r.content || ' ' || array_to_string(r.tags, ' '))));
  -- The log: of what goes, of its turns, and whatever else repeats it.
  logged := ARRAY(SELECT l.id FROM memory_log l WHERE l.agent_id = p_agent AND (l.turn_id = ANY (p_turns)
      OR (l.target = 'working_context' AND l.target_id = ANY (p_entries)) OR (l.target = 'passage' AND l.target_id = ANY (p_passages))
      OR (l.target = 'message' AND l.target_id = ANY (p_messages)) OR (l.target = 'timer' AND l.target_id = ANY (p_timers))
      OR (l.target IN ('summary', 'conversation') AND l.target_id = ANY (p_conversations))));
  -- What was made in turns that go keeps its words in the log of its other changes, even where it is gone already.
  DELETE FROM memory_log_content WHERE agent_id = p_agent AND log_id = ANY (ARRAY(
    SELECT unnest(logged) UNION SELECT l.id FROM memory_log l JOIN memory_log made ON made.target = l.target AND made.target_id = l.target_id
      WHERE l.agent_id = p_agent AND made.agent_id = p_agent AND made.turn_id = ANY (p_turns) AND made.target NOT IN ('summary', 'conversation')));
  IF p_rare <> '{}' THEN
    DELETE FROM memory_log_content WHERE agent_id = p_agent AND has_rare(p_rare, concat_ws(' ', reason, before, after, row_before->>'content', row_before->>'purpose'));
  END IF;
  WITH ended AS (UPDATE events SET status = 3, done_at = coalesce(done_at, created_at)
      WHERE agent_id = p_agent AND status IN (0, 2) AND cardinality(p_timers) > 0 AND payload->>'timer_id' = ANY (p_timers::text[]) RETURNING id, turn_id)
    UPDATE turns SET cancel_requested = true WHERE state = 'running' AND id IN (SELECT turn_id FROM ended)
      AND NOT EXISTS (SELECT 1 FROM events e WHERE e.turn_id = turns.id AND e.status = 0 AND e.id NOT IN (SELECT id FROM ended));
  DELETE FROM timers WHERE agent_id = p_agent AND id = ANY (p_timers);
  UPDATE speaking SET zone_guess = NULL, guess_turn = NULL WHERE agent_id = p_agent AND guess_turn = ANY (p_turns);
  -- Calls and results leave together, so that no call stays without its result.
  DELETE FROM messages WHERE agent_id = p_agent AND turn_id = ANY (inner_turns) AND kind IN ('call', 'result', 'monologue');
  UPDATE messages SET calls = NULL WHERE agent_id = p_agent AND turn_id = ANY (inner_turns) AND calls IS NOT NULL;
  UPDATE events SET payload = wordless(payload), status = CASE status WHEN 2 THEN 3 ELSE status END
    WHERE agent_id = p_agent AND id IN (SELECT event_id FROM messages WHERE id = ANY (p_messages) AND kind <> 'quote');
  -- A quote came with somebody's own message, which stays.
  UPDATE events SET payload = payload - 'quotes'
    WHERE agent_id = p_agent AND payload ? 'quotes' AND id IN (SELECT event_id FROM messages WHERE id = ANY (p_messages) AND kind = 'quote');
  UPDATE outbox SET body = '', state = CASE state WHEN 'waiting' THEN 'withdrawn' ELSE state END
    WHERE agent_id = p_agent AND (p_note IS NULL OR state NOT IN ('sending', 'streaming')) AND (p_unsent OR state NOT IN ('waiting', 'sending', 'streaming'))
      AND turn_id IN (SELECT turn_id FROM messages WHERE id = ANY (p_messages) AND role = 'assistant');
  UPDATE conversations SET summary = '', summary_visibility = 'public', summary_from = NULL, summary_to = NULL, summary_tail = '', pending_from = NULL
    WHERE agent_id = p_agent AND id = ANY (p_conversations);
  DELETE FROM sources WHERE agent_id = p_agent AND conversation_id = ANY (p_conversations);
  DELETE FROM working_context WHERE agent_id = p_agent AND id = ANY (p_entries);
  DELETE FROM passages WHERE agent_id = p_agent AND id = ANY (p_passages);
  DELETE FROM documents WHERE agent_id = p_agent AND id = ANY (p_documents);
  IF p_note IS NULL THEN
    DELETE FROM messages WHERE agent_id = p_agent AND id = ANY (p_messages);
  ELSE
    UPDATE messages SET content = p_note, calls = NULL, searchable = false WHERE agent_id = p_agent AND id = ANY (p_messages);
    DELETE FROM embeddings WHERE agent_id = p_agent AND message_id = ANY (p_messages);
    DELETE FROM unembedded WHERE agent_id = p_agent AND message_id = ANY (p_messages);
  END IF;
  RETURN CASE WHEN p_elsewhere AND origins <> '{}' THEN forget_quoted(origins, '{}', ARRAY[p_agent]) ELSE '{}' END;
END $$;

-- Everything that forgetting some rows of an agent takes along, in one call for whoever needs no list. Returns the other agents.
CREATE FUNCTION forget(p_agent bigint, p_messages bigint[], p_entries bigint[] DEFAULT '{}', p_passages bigint[] DEFAULT '{}', p_timers bigint[] DEFAULT '{}',
  p_documents bigint[] DEFAULT '{}', p_conversations bigint[] DEFAULT '{}', p_elsewhere boolean DEFAULT true) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE r record;
BEGIN
  SELECT * INTO r FROM forget_reach(p_agent, p_messages, p_entries, p_passages, p_timers);
  RETURN forget_rows(p_agent, r.messages, r.entries, r.passages, r.timers, p_documents, p_conversations, r.turns, r.made_in, r.rare, NULL, p_elsewhere);
END $$;

-- Takes words out of every agent but some that brought them along as quotes: messages by their ids on the platform (`channel/message`),
-- everything of an author or said to one. With what was made of it. Their versions rise, so that a running turn that has read any of it
-- starts its pass again. Returns the agents.
CREATE FUNCTION forget_quoted(p_origins text[], p_authors text[], p_except bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE touched bigint[]; more bigint[] := '{}'; a bigint; entries bigint[]; stored bigint[];
BEGIN
  -- Also what repeated an author once and was changed or removed since: the log has it as it was.
  entries := ARRAY(SELECT id FROM working_context WHERE author_id <> '' AND author_id = ANY (p_authors) UNION SELECT l.target_id FROM memory_log l
    JOIN memory_log_content k ON k.log_id = l.id
    WHERE l.target = 'working_context' AND k.row_before->>'author_id' <> '' AND k.row_before->>'author_id' = ANY (p_authors));
  stored := ARRAY(SELECT id FROM passages WHERE author_id <> '' AND author_id = ANY (p_authors) UNION SELECT l.target_id FROM memory_log l
    JOIN memory_log_content k ON k.log_id = l.id
    WHERE l.target = 'passage' AND k.row_before->>'author_id' <> '' AND k.row_before->>'author_id' = ANY (p_authors));
  touched := ARRAY(
    SELECT agent_id FROM messages WHERE kind = 'quote' AND author_id = ANY (p_authors)
    UNION SELECT agent_id FROM messages WHERE kind = 'quote' AND said_to <> '' AND said_to = ANY (p_authors)
    UNION SELECT agent_id FROM messages WHERE kind = 'quote' AND platform_id IS NOT NULL AND platform_id COLLATE "C" = ANY (p_origins)
    UNION SELECT agent_id FROM working_context WHERE author_id <> '' AND author_id = ANY (p_authors)
    UNION SELECT agent_id FROM passages WHERE author_id <> '' AND author_id = ANY (p_authors)
    UNION SELECT agent_id FROM memory_log WHERE (target = 'working_context' AND target_id = ANY (entries)) OR (target = 'passage' AND target_id = ANY (stored))
    UNION SELECT agent_id FROM events e WHERE e.payload ? 'quotes' AND EXISTS (SELECT FROM jsonb_array_elements(e.payload->'quotes') q
      WHERE q->>'author_id' = ANY (p_authors) OR q->>'said_to' = ANY (p_authors) OR q->>'origin' = ANY (p_origins)));
  touched := ARRAY(SELECT unnest(touched) EXCEPT SELECT unnest(p_except) ORDER BY 1);
  PERFORM 1 FROM agents WHERE id = ANY (touched) ORDER BY id FOR NO KEY UPDATE;
  FOREACH a IN ARRAY touched LOOP
    more := more || forget(a, ARRAY(SELECT id FROM messages WHERE agent_id = a AND kind = 'quote'
        AND (author_id = ANY (p_authors) OR (said_to <> '' AND said_to = ANY (p_authors)) OR platform_id COLLATE "C" = ANY (p_origins))),
      ARRAY(SELECT id FROM working_context WHERE agent_id = a AND author_id <> '' AND author_id = ANY (p_authors)
        UNION SELECT target_id FROM memory_log WHERE agent_id = a AND target = 'working_context' AND target_id = ANY (entries)),
      ARRAY(SELECT id FROM passages WHERE agent_id = a AND author_id <> '' AND author_id = ANY (p_authors)
        UNION SELECT target_id FROM memory_log WHERE agent_id = a AND target = 'passage' AND target_id = ANY (stored)));
    UPDATE events e SET payload = jsonb_set(payload, '{quotes}', (
        SELECT coalesce(jsonb_agg(q), '[]') FROM jsonb_array_elements(e.payload->'quotes') q
        WHERE NOT coalesce(q->>'author_id' = ANY (p_authors), false) AND NOT coalesce(q->>'said_to' = ANY (p_authors), false)
          AND NOT coalesce(q->>'origin' = ANY (p_origins), false)))
      WHERE e.agent_id = a AND e.payload ? 'quotes';
    UPDATE agents SET version = version + 1 WHERE id = a;
  END LOOP;
  RETURN ARRAY(SELECT unnest(touched || more) EXCEPT SELECT unnest(p_except));
END $$;

DROP FUNCTION forget_author(text[], bigint[]);
DROP FUNCTION drop_repeated(bigint[], text[], bigint[]);

-- A whole person: own rows by cascade, which is quicker than any walk, and what others hold of them by the walk.
CREATE OR REPLACE FUNCTION erase_agent(p_agent bigint, p_actor text, p_hash_key bytea, p_now timestamptz) RETURNS jsonb
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

-- How many rows of anybody repeat an author.
CREATE FUNCTION quoted_rows(p_authors text[]) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT (SELECT count(*) FROM messages WHERE kind = 'quote' AND author_id = ANY (p_authors))
    + (SELECT count(*) FROM messages WHERE kind = 'quote' AND said_to <> '' AND said_to = ANY (p_authors))
    + (SELECT count(*) FROM working_context WHERE author_id <> '' AND author_id = ANY (p_authors))
    + (SELECT count(*) FROM passages WHERE author_id <> '' AND author_id = ANY (p_authors))
$$;

-- An author who never had an agent, or whose words were brought along before: the same without the own rows.
CREATE FUNCTION erase_author(p_author text, p_actor text, p_hash_key bytea, p_now timestamptz) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE n bigint; others bigint[];
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('keepsake.erasure'));
  INSERT INTO erased_people (hash, at) VALUES (person_hash(p_hash_key, split_part(p_author, ':', 1), split_part(p_author, ':', 2),
      substr(p_author, length(split_part(p_author, ':', 1)) + length(split_part(p_author, ':', 2)) + 3)), clock_timestamp())
    ON CONFLICT (hash) DO UPDATE SET at = excluded.at;
  n := quoted_rows(ARRAY[p_author]);
  others := forget_quoted('{}', ARRAY[p_author], '{}');
  INSERT INTO erasures (at, actor, counts) VALUES (p_now, p_actor, jsonb_build_object('quotes', n));
  RETURN jsonb_build_object('quotes', n, 'touched', to_jsonb(others));
END $$;

-- Pausing -----------------------------------------------------------------------------------------------

-- Deletes what was said while memory was paused, before a time, but for the turn that runs; a dead letter of it has nothing left to replay.
-- Returns how many messages.
CREATE OR REPLACE FUNCTION drop_passing(p_agent bigint, p_before timestamptz) RETURNS bigint
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

-- A reply of which nothing is kept any more is kept no longer than until it is sent.
CREATE FUNCTION empty_sent() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM messages m WHERE m.turn_id = new.turn_id) THEN new.body := ''; END IF;
  RETURN new;
END $$;
CREATE TRIGGER empty_sent BEFORE UPDATE OF state ON outbox FOR EACH ROW WHEN (new.state = 'sent' AND new.body <> '') EXECUTE FUNCTION empty_sent();

-- Retention ---------------------------------------------------------------------------------------------

-- Deletes of one kind what is older than a time, of at most p_agents people and p_rows rows of each, and skips people whose turn commits
-- right now. Words go through the same door as everything that is forgotten: with their summaries, results, calls and log. What was made of a
-- message has a time of its own and stays. Returns whose, how many rows, and whether it may be seen in their prompt. Nothing returned:
-- nothing is left to do.
CREATE OR REPLACE FUNCTION retain(p_kind text, p_before timestamptz, p_agents integer, p_rows integer) RETURNS TABLE (agent_id bigint, removed bigint, seen boolean)
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
        CASE t WHEN 'messages' THEN 'f.message_id = ANY ($1)' WHEN 'passages' THEN 'f.passage_id = ANY ($1)' ELSE 'false' END,
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

-- Forgets what came from workspaces that were left before a time, and what was made of it elsewhere, of at most p_agents people. Returns whose.
CREATE OR REPLACE FUNCTION retain_workspaces(p_before timestamptz, p_agents integer) RETURNS SETOF bigint
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
      ARRAY(SELECT id FROM passages WHERE agent_id = a AND place_id = ANY (here)), ARRAY(SELECT id FROM timers WHERE agent_id = a AND place_id = ANY (here)),
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

-- The proof ---------------------------------------------------------------------------------------------

-- Every column that can hold words: text, arrays of text, JSON. Found in the schema, so that a later table is searched too.
CREATE FUNCTION word_columns() RETURNS TABLE (t text, c text, owned boolean) LANGUAGE sql STABLE AS $$
  SELECT r.relname::text, a.attname::text, EXISTS (SELECT FROM pg_attribute o WHERE o.attrelid = r.oid AND o.attname = 'agent_id' AND NOT o.attisdropped)
  FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
  WHERE r.relnamespace = 'keepsake'::regnamespace AND r.relkind IN ('r', 'p') AND NOT a.attisdropped AND a.attnum > 0
    AND a.atttypid IN ('text'::regtype, 'varchar'::regtype, 'text[]'::regtype, 'json'::regtype, 'jsonb'::regtype)
    AND r.relname NOT IN ('alembic_version', 'slack_installations')
  ORDER BY 1, a.attnum
$$;

-- Where any of these word sequences (in lower case) stand, by table: how many rows. In the rows of some agents and in those of no agent, or with
-- null in all. JSON is searched as it is written and with its inner escapes taken out, as calls are JSON within JSON.
CREATE FUNCTION find_words(p_words text[], p_agents bigint[] DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER STABLE AS $$
DECLARE counts jsonb := '{}'; each record; n bigint;
BEGIN
  FOR each IN SELECT t, owned, string_agg(format('coalesce(lower(%I::text), '''')', c), ' || '' '' || ') AS texts FROM word_columns() GROUP BY 1, 2 ORDER BY 1 LOOP
    EXECUTE format('SELECT count(*) FROM (SELECT %s AS x FROM %I WHERE $2 IS NULL OR %s OFFSET 0) rows WHERE EXISTS (SELECT FROM unnest($1) w WHERE strpos(x, w) > 0)',
      each.texts, each.t, CASE WHEN each.owned THEN 'agent_id = ANY ($2)' ELSE 'true' END) INTO n USING p_words, p_agents;
    counts := counts || jsonb_build_object(each.t, n);
  END LOOP;
  RETURN counts;
END $$;

-- The agents whose people were in a place with these authors or this agent, or whose rows name them: where a copy may be.
CREATE FUNCTION beside(p_agent bigint, p_authors text[]) RETURNS bigint[] LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT ARRAY(
    SELECT o.agent_id FROM conversations c JOIN places p ON p.id = c.place_id JOIN places near ON near.id = p.id OR near.parent_id = p.id OR near.id = p.parent_id
      JOIN conversations o ON o.place_id = near.id WHERE c.agent_id = p_agent
    UNION SELECT agent_id FROM messages WHERE kind = 'quote' AND author_id = ANY (p_authors)
    UNION SELECT agent_id FROM messages WHERE kind = 'quote' AND said_to <> '' AND said_to = ANY (p_authors)
    UNION SELECT agent_id FROM working_context WHERE author_id <> '' AND author_id = ANY (p_authors)
    UNION SELECT agent_id FROM passages WHERE author_id <> '' AND author_id = ANY (p_authors)
    UNION SELECT p_agent)
$$;

-- What a person said and what was made of it, for choosing what the proof looks for; for the caller alone, who forgets it at once.
CREATE FUNCTION texts_of(p_agent bigint, p_authors text[], p_limit integer) RETURNS SETOF text LANGUAGE sql SECURITY DEFINER STABLE AS $$
  (SELECT content FROM messages WHERE agent_id = p_agent AND role = 'user' AND kind = 'message' ORDER BY id DESC LIMIT p_limit)
  UNION ALL (SELECT content FROM messages WHERE kind = 'quote' AND author_id = ANY (p_authors) LIMIT p_limit)
  UNION ALL SELECT content FROM working_context WHERE agent_id = p_agent
  UNION ALL (SELECT content FROM passages WHERE agent_id = p_agent AND document_id IS NULL ORDER BY id DESC LIMIT p_limit)
$$;

-- Which of these sequences other people said themselves: those prove nothing.
CREATE FUNCTION said_by_others(p_words text[], p_agents bigint[], p_authors text[]) RETURNS SETOF text LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT w FROM unnest(p_words) w WHERE EXISTS (SELECT FROM messages m WHERE m.agent_id = ANY (p_agents) AND m.role = 'user' AND m.kind IN ('message', 'quote')
    AND m.author_id <> ALL (p_authors) AND m.said_to <> ALL (p_authors) AND strpos(lower(m.content), w) > 0)
$$;

-- Accounts that were erased and of which something stands all the same: names in any column called author_id or said_to, and in any JSON. By table.
CREATE FUNCTION erased_yet_named(p_hash_key bytea) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER STABLE AS $$
DECLARE counts jsonb := '{}'; each record; n bigint;
BEGIN
  FOR each IN SELECT r.relname::text AS t, a.attname::text AS c, a.atttypid IN ('json'::regtype, 'jsonb'::regtype) AS json
    FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
    WHERE r.relnamespace = 'keepsake'::regnamespace AND r.relkind IN ('r', 'p') AND NOT a.attisdropped AND a.attnum > 0
      AND (a.attname IN ('author_id', 'said_to') OR a.atttypid IN ('json'::regtype, 'jsonb'::regtype)) ORDER BY 1, 2 LOOP
    EXECUTE format($q$SELECT count(*) FROM (%s) named (name) WHERE name LIKE '%%:%%:%%' AND EXISTS (
        SELECT FROM erased_people e WHERE e.hash = person_hash($1, split_part(name, ':', 1), split_part(name, ':', 2),
          substr(name, length(split_part(name, ':', 1)) + length(split_part(name, ':', 2)) + 3)))
        AND NOT EXISTS (SELECT FROM identities i WHERE i.platform || ':' || i.realm || ':' || i.user_id = name)$q$,
      CASE WHEN each.json THEN format($q$SELECT v #>> '{}' FROM %I, jsonb_path_query(%I::jsonb, 'strict $.**.author_id ? (@.type() == "string")') v
          UNION ALL SELECT v #>> '{}' FROM %1$I, jsonb_path_query(%2$I::jsonb, 'strict $.**.said_to ? (@.type() == "string")') v$q$, each.t, each.c)
        ELSE format('SELECT %I FROM %I WHERE %1$I <> ''''', each.c, each.t) END) INTO n USING p_hash_key;
    counts := counts || jsonb_build_object(each.t, n + coalesce((counts->>each.t)::bigint, 0));
  END LOOP;
  RETURN counts;
END $$;

-- What is left of an agent anywhere, and of its person's words in anybody's rows: the proof after an erasure. All zero, or the erasure failed.
-- It asks no eraser where it looked: every column called author_id or said_to and every JSON column of every table is searched for the names.
-- A job that runs ends by itself, as there is nothing left to claim, and is not counted.
CREATE OR REPLACE FUNCTION residue(p_agent bigint, p_authors text[] DEFAULT '{}') RETURNS jsonb
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
