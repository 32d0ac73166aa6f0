-- Of messages that somebody brings along (`channel/message`): to whom the bot said them, and those that were kept here once and are `gone`,
-- forgotten or said in a pause, although their platform still shows them. No row for all others.
CREATE FUNCTION said_to(p_platform text, p_origins text[]) RETURNS TABLE (origin text, author_id text, gone boolean)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH asked AS (SELECT q AS origin, split_part(q, '/', 1) AS channel, substr(q, length(split_part(q, '/', 1)) + 2) AS id FROM unnest(p_origins) q)
  SELECT q.origin, coalesce(
    (SELECT m.author_id FROM messages m WHERE m.turn_id = o.turn_id AND m.role = 'user' AND m.kind = 'message' AND m.author_id <> '' ORDER BY m.id DESC LIMIT 1),
    (SELECT i.platform || ':' || i.realm || ':' || i.user_id FROM identities i WHERE (i.agent_id = o.agent_id OR i.merged_into = o.agent_id)
       AND i.platform = p_platform ORDER BY i.user_id LIMIT 1), ''),
    o.body = '' AND NOT EXISTS (SELECT FROM messages m WHERE m.turn_id = o.turn_id AND m.role = 'assistant' AND m.kind = 'message')
  FROM asked q JOIN outbox o ON o.platform = p_platform AND o.channel = q.channel AND o.platform_id = q.id
  UNION ALL
  SELECT q.origin, '', true FROM asked q JOIN places p ON p.platform = p_platform AND p.external_id = q.channel
    JOIN events e ON e.place_id = p.id AND e.payload->>'message_id' = q.id AND NOT e.payload ? 'text'
    WHERE e.kind = 'message' AND NOT EXISTS (SELECT FROM messages m WHERE m.event_id = e.id)
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
-- this agent. What those others have, a later text may just as well have from there. What the bot said, which somebody brought along, is none of
-- it: it may go itself, with the agent that it came from.
CREATE FUNCTION rare_words(p_agent bigint, p_texts text[], p_gone bigint[]) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE found text[]; kept text[];
BEGIN
  found := ARRAY(SELECT DISTINCT w FROM unnest(p_texts) t, unnest(search_words(left(t, 100000), false)) w
    WHERE length(w) >= 3 OR w ~ '[0-9]{2}' OR w ~ '^[^\x01-\x7f]{2}$');
  found := ARRAY(SELECT unnest(found) EXCEPT SELECT unnest(common_words()));
  IF cardinality(found) <= 200 THEN
    RETURN ARRAY(SELECT w FROM unnest(found) w WHERE NOT EXISTS (
      SELECT FROM messages m WHERE m.agent_id = p_agent AND m.tsv @@ search_query(w) AND m.searchable AND m.role = 'user' AND m.said_to = '' AND m.id <> ALL (p_gone)));
  END IF;
  kept := ARRAY(SELECT DISTINCT w FROM messages m, unnest(tsvector_to_array(m.tsv)) w
    WHERE m.agent_id = p_agent AND m.searchable AND m.role = 'user' AND m.said_to = '' AND m.id <> ALL (p_gone));
  RETURN ARRAY(SELECT unnest(found) EXCEPT SELECT unnest(kept));
END $$;

CREATE FUNCTION has_rare(p_words text[], p_text text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT p_text <> '' AND EXISTS (SELECT FROM unnest(search_words(left(p_text, 100000), true)) w WHERE w = ANY (p_words))
$$;

-- How far forgetting some rows of an agent reaches. Gone with them is what names them as a strong source: what a message was the trigger of
-- or is quoted in, the replies to it and its turn's timers, the replies of turns whose search found it. And, copy after copy, what was made
-- with any of it in view and shares a rare word, name or number with it. What was made with it in view and shares none is listed for the
-- person (`maybe`, as m1, w2). `turns`: those that it began; `made_in`: those whose inner workings show it.
-- Of a document, whatever was shown of it counts, and the event that told of it; the rest of it nobody has seen.
-- p_words: whose words are followed instead of the rows' own, and then nothing else is strong.
CREATE FUNCTION forget_reach(p_agent bigint, p_messages bigint[], p_entries bigint[], p_passages bigint[], p_timers bigint[],
  p_words text[] DEFAULT NULL, p_documents bigint[] DEFAULT '{}', OUT messages bigint[], OUT entries bigint[], OUT passages bigint[], OUT timers bigint[], OUT turns bigint[],
  OUT made_in bigint[], OUT rare text[], OUT maybe text[])
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
#variable_conflict use_variable
DECLARE
  size integer; seen bigint[]; watched bigint[]; looked bigint[]; texts text[]; strong CONSTANT boolean := p_words IS NULL;
BEGIN
  IF p_documents <> '{}' THEN
    p_passages := p_passages || ARRAY(SELECT p.id FROM passages p WHERE p.agent_id = p_agent AND p.document_id = ANY (p_documents)
      AND EXISTS (SELECT FROM fetched f WHERE f.passage_id = p.id));
    p_messages := p_messages || ARRAY(SELECT m.id FROM messages m JOIN events e ON e.id = m.event_id
      WHERE e.agent_id = p_agent AND e.payload->>'document_id' = ANY (p_documents::text[]));
  END IF;
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
    -- One whose asking message is known goes with that one alone, whatever else was written in its turn.
    timers := ARRAY(SELECT unnest(timers) UNION SELECT t.id FROM timers t WHERE t.agent_id = p_agent
      AND (t.message_id = ANY (p_messages) OR (t.message_id IS NULL AND t.turn_id = ANY (turns))));
  END IF;
  LOOP
    size := cardinality(messages) + cardinality(entries) + cardinality(passages) + cardinality(timers);
    -- The same words again where somebody's message brought them along: a reply of the bot's, or the person's own message.
    -- Brought along twice, they are one text: neither copy makes the words of the other common.
    messages := ARRAY(SELECT unnest(messages) UNION SELECT m.id FROM messages m
      WHERE m.agent_id = p_agent AND m.kind = 'quote' AND m.platform_id COLLATE "C" = ANY (origins_of(p_agent, messages) || ARRAY(
        SELECT q.platform_id FROM messages q WHERE q.id = ANY (messages) AND q.agent_id = p_agent AND q.kind = 'quote' AND q.platform_id IS NOT NULL)));
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
      -- What the bot said and somebody brought along, too: of a pause, say, it is kept nowhere else.
      messages := ARRAY(SELECT unnest(messages) UNION SELECT m.id FROM messages m WHERE m.agent_id = p_agent AND m.turn_id = ANY (seen)
        AND ((m.role = 'assistant' AND m.kind = 'message') OR m.kind = 'event' OR (m.kind = 'quote' AND m.said_to <> '')) AND has_rare(rare, m.content));
      entries := ARRAY(SELECT unnest(entries) UNION SELECT w.id FROM working_context w
        WHERE w.agent_id = p_agent AND w.turn_id = ANY (seen) AND has_rare(rare, w.content));
      passages := ARRAY(SELECT unnest(passages) UNION SELECT p.id FROM passages p WHERE p.agent_id = p_agent AND p.turn_id = ANY (seen)
        AND has_rare(rare, p.content || ' ' || array_to_string(p.tags, ' ')));
      timers := ARRAY(SELECT unnest(timers) UNION SELECT t.id FROM timers t
        WHERE t.agent_id = p_agent AND t.turn_id = ANY (seen) AND has_rare(rare, t.purpose || ' ' || t.name));
    END IF;
    EXIT WHEN size = cardinality(messages) + cardinality(entries) + cardinality(passages) + cardinality(timers);
  END LOOP;
  passages := ARRAY(SELECT unnest(passages) EXCEPT SELECT p.id FROM passages p WHERE p.document_id = ANY (p_documents));  -- those go with it
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
      OR (l.target = 'message' AND l.target_id = ANY (p_messages)) OR (l.target = 'document' AND l.target_id = ANY (p_documents)) OR (l.target = 'timer' AND l.target_id = ANY (p_timers))
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
  -- A list of what would be forgotten repeats it (step -8: bot/functions/forget.py); whatever goes, it is no longer what it was.
  UPDATE outbox SET body = '', buttons = NULL, state = CASE state WHEN 'waiting' THEN 'withdrawn' ELSE state END WHERE agent_id = p_agent AND step = -8;
  -- The bot's own lines, which no step of a turn reaches: those about a timer are known by their buttons, others by their words.
  UPDATE outbox SET body = '', buttons = NULL, state = CASE state WHEN 'waiting' THEN 'withdrawn' ELSE state END
    WHERE agent_id = p_agent AND step < 0 AND (has_rare(p_rare, body) OR EXISTS (SELECT FROM jsonb_array_elements(buttons) b
      WHERE split_part(b->>'line', ' ', 3) = ANY (SELECT 't' || t FROM unnest(p_timers) t)));
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
  SELECT * INTO r FROM forget_reach(p_agent, p_messages, p_entries, p_passages, p_timers, NULL, p_documents);
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

-- Which of these sequences other people said themselves, or all the rarer words of in one message: those prove nothing.
CREATE FUNCTION said_by_others(p_words text[], p_agents bigint[], p_authors text[]) RETURNS SETOF text LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH sought AS MATERIALIZED (SELECT w, (SELECT string_agg(search_query(rarer)::text, ' & ')::tsquery
    FROM (SELECT unnest(search_words(w, false)) EXCEPT SELECT unnest(common_words())) _ (rarer)) AS all_of FROM unnest(p_words) w)
  SELECT w FROM sought WHERE EXISTS (SELECT FROM messages m WHERE m.agent_id = ANY (p_agents) AND m.role = 'user' AND m.kind IN ('message', 'quote')
    AND m.author_id <> ALL (p_authors) AND m.said_to <> ALL (p_authors) AND (strpos(lower(m.content), w) > 0 OR m.tsv @@ all_of))
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
