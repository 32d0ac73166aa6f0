-- Search of recall storage and archival storage: words and meaning blended. One path, whatever the size; its cost depends on the agent's own rows.
--
-- The agent and the places come from the session's settings, never from arguments; the two functions that the bot calls belong to the owner,
-- because under the bot's row-level security an index of words cannot be used.
--
-- What a match is: a row that shares a word with the query (not one of the agent's commonest words, unless the query has no other), or (when
-- no row shares one) contains the query's text, or is among the 50 nearest in meaning and either in the first ten of those or one standard
-- deviation nearer than usual. Order: rows that contain the quoted parts of the query (the whole query, when nothing is quoted) first; then
-- by score; then the newest. Matches beyond the best some hundred, which are scored in full, follow by their words alone.

-- All that the ranking goes by. The weights were learned on questions about other conversations; memory/search.py says what each brought.
CREATE FUNCTION search_weights(
  OUT meaning float8,       -- of a standard deviation of cosine above the agent's usual one
  OUT words float8,         -- of the shared words' rarities, together: of a word in one row only 6.3, and less in a long query
  OUT meaning_beside float8, OUT meaning_next_but_one float8,   -- of the same of the two messages next to it, and of the next but one
  OUT words_beside float8, OUT words_next_but_one float8,
  OUT answers float8,       -- besides that, of the words of the message before, if it asks something
  OUT speaker float8,       -- for a message of the one person whom the query names
  OUT question float8,      -- for a message that ends with a question mark, if the query does, too
  OUT day float8,           -- for a message of the days that the query names
  OUT time_words float8,    -- for a message with words of time, if the query asks for a time
  OUT common integer,       -- rows that a word may be looked up in; in more, it is a common word
  OUT exact integer,        -- own vectors that are compared one by one; of more, the nearest signatures are
  OUT nearest integer, OUT best_words integer, OUT best integer,  -- rows that go on from meaning, from words, and to their neighbours
  OUT sample integer,       -- rows that tell what is usual
  OUT most integer          -- matches that are counted
) LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT 0.48, 0.28, 0.3, 0.17, 0.09, 0.1, 0.15, 2.2, -1.1, 4.4, 2.05, 5000, 10000, 200, 300, 150, 256, 1000
$$;

-- One page of recall storage, best first. `after` is inclusive, `before` is not; of the roles, `quote` means somebody else's quoted words.
-- `about`: the times that the query names; `time_words`: words that tell a time, if it asks for one. Left out is what is visible anyway: the messages of
-- `queue` (a conversation) from position `queue_from` on that have at most `queue_whole` characters. A blank query without a vector lists the
-- newest first. `total` is exact up to `most`, and one more beyond. Exactly one row has id null when the page is empty.
CREATE FUNCTION search_messages(
  query text, query_embedding halfvec DEFAULT NULL, model integer DEFAULT NULL, roles text[] DEFAULT NULL,
  before timestamptz DEFAULT NULL, after timestamptz DEFAULT NULL, lim integer DEFAULT 10, off integer DEFAULT 0, floor float8 DEFAULT 0,
  about tstzmultirange DEFAULT NULL, time_words text DEFAULT NULL,
  queue bigint DEFAULT NULL, queue_from bigint DEFAULT NULL, queue_whole integer DEFAULT NULL
) RETURNS TABLE (id bigint, score float8, total bigint, content text, author_name text, role text, kind text, visibility text, created_at timestamptz,
  place_id bigint, place_kind text, place_name text, platform text, workspace text)
LANGUAGE sql SECURITY DEFINER SET search_path = keepsake, public, pg_temp
AS $$
  SELECT r.id, r.score, r.total, m.content, m.author_name, m.role, m.kind, m.visibility, m.created_at,
     p.id, p.kind, p.name, p.platform, p.workspace
  FROM search_ranked(('messages', current_agent(), whole_places(), public_places(), shared_places(), roles, NULL, before, after,
      queue, queue_from, queue_whole)::search_filter, query, query_embedding, model, lim, off, floor, about, time_words)
    WITH ORDINALITY r (id, score, total, nth)
  LEFT JOIN messages m ON m.id = r.id LEFT JOIN places p ON p.id = m.place_id
  ORDER BY r.nth
$$;

-- One page of archival storage; with `tags`, of the passages that have any of them.
CREATE FUNCTION search_passages(
  query text, query_embedding halfvec DEFAULT NULL, model integer DEFAULT NULL, tags text[] DEFAULT NULL,
  before timestamptz DEFAULT NULL, after timestamptz DEFAULT NULL, lim integer DEFAULT 10, off integer DEFAULT 0, floor float8 DEFAULT 0
) RETURNS TABLE (id bigint, score float8, total bigint, content text, author_name text, tags_of text[], visibility text, created_at timestamptz,
  place_id bigint, place_kind text, place_name text, platform text, workspace text, document text, page integer, heading text)
LANGUAGE sql SECURITY DEFINER SET search_path = keepsake, public, pg_temp
AS $$
  SELECT r.id, r.score, r.total, a.content, a.author_name, a.tags, a.visibility, a.created_at,
     p.id, p.kind, p.name, p.platform, p.workspace, d.name, a.page, a.heading
  FROM search_ranked(('passages', current_agent(), whole_places(), public_places(), shared_places(), NULL, tags, before, after,
      NULL, NULL, NULL)::search_filter, query, query_embedding, model, lim, off, floor, NULL, NULL)
    WITH ORDINALITY r (id, score, total, nth)
  LEFT JOIN passages a ON a.id = r.id LEFT JOIN places p ON p.id = a.place_id LEFT JOIN documents d ON d.id = a.document_id
  ORDER BY r.nth
$$;

-- Whether a row may be used here (rule 5). Inlined, as the next three.
CREATE FUNCTION search_usable(f search_filter, place_id bigint, visibility text, shareable boolean) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT place_id = ANY (f.whole) OR (visibility = 'public' AND place_id = ANY (f.public)) OR (shareable AND place_id = ANY (f.shared)) $$;

-- The rows that may be used here, with a sign of whether the filter wants them as results. Whose they are is checked in a way that no index serves:
-- an index of all the agent's rows would be read beside that of a word. To find rows by it, ask for their `owner`.
CREATE FUNCTION search_rows(f search_filter)
RETURNS TABLE (id bigint, owner bigint, thread bigint, step bigint, author text, content text, tsv tsvector, keys bigint[], created_at timestamptz, wanted boolean)
LANGUAGE sql STABLE
AS $$
  SELECT m.id, m.agent_id, m.conversation_id, m.position, m.author_name, m.content, m.tsv, search_keys(m.agent_id, tsvector_to_array(m.tsv)), m.created_at,
    (f.before IS NULL OR m.created_at < f.before) AND (f.after IS NULL OR m.created_at >= f.after)
    AND (f.roles IS NULL OR CASE m.kind WHEN 'quote' THEN 'quote' ELSE m.role END = ANY (f.roles))
    AND (f.queue IS NULL OR m.conversation_id <> f.queue OR m.position < f.queue_from OR length(m.content) > f.queue_whole)
  FROM messages m
  WHERE f.source = 'messages' AND m.agent_id IS NOT DISTINCT FROM f.agent AND m.searchable
    AND search_usable(f, m.place_id, m.visibility, m.shareable)
  UNION ALL
  SELECT p.id, p.agent_id, p.id, 0::bigint, ''::text, p.content, p.tsv, search_keys(p.agent_id, tsvector_to_array(p.tsv)), p.created_at,
    (f.before IS NULL OR p.created_at < f.before) AND (f.after IS NULL OR p.created_at >= f.after) AND (f.tags IS NULL OR p.tags && f.tags)
  FROM passages p
  WHERE f.source = 'passages' AND p.agent_id IS NOT DISTINCT FROM f.agent
    AND search_usable(f, p.place_id, p.visibility, p.shareable)
$$;

-- The agent's vectors of some places and times. Plain arguments, because a field of a record is taken out again for
-- every row: of 100,000 rows that was half of the time.
CREATE FUNCTION search_own_vectors(source text, agent bigint, places bigint[], before timestamptz, after timestamptz, model integer)
RETURNS TABLE (id bigint, embedding halfvec)
LANGUAGE sql STABLE
AS $$
  SELECT e.message_id, e.embedding FROM embeddings e
  WHERE source = 'messages' AND e.agent_id = agent AND e.model_id = model AND e.message_id IS NOT NULL
    AND e.place_id = ANY (places) AND (before IS NULL OR e.said_at < before) AND (after IS NULL OR e.said_at >= after)
  UNION ALL
  SELECT e.passage_id, e.embedding FROM embeddings e
  WHERE source = 'passages' AND e.agent_id = agent AND e.model_id = model AND e.passage_id IS NOT NULL
    AND e.place_id = ANY (places) AND (before IS NULL OR e.said_at < before) AND (after IS NULL OR e.said_at >= after)
$$;

-- The rows whose signatures are nearest. Sorted a table at a time: what goes through a UNION first takes a third longer.
CREATE FUNCTION search_alike(source text, agent bigint, places bigint[], before timestamptz, after timestamptz, model integer, signs varbit, many integer)
RETURNS TABLE (id bigint)
LANGUAGE sql STABLE
AS $$
  (SELECT e.message_id FROM embeddings e
   WHERE source = 'messages' AND e.agent_id = agent AND e.model_id = model AND e.message_id IS NOT NULL
     AND e.place_id = ANY (places) AND (before IS NULL OR e.said_at < before) AND (after IS NULL OR e.said_at >= after)
   ORDER BY e.signature <~> signs LIMIT many)
  UNION ALL
  (SELECT e.passage_id FROM embeddings e
   WHERE source = 'passages' AND e.agent_id = agent AND e.model_id = model AND e.passage_id IS NOT NULL
     AND e.place_id = ANY (places) AND (before IS NULL OR e.said_at < before) AND (after IS NULL OR e.said_at >= after)
   ORDER BY e.signature <~> signs LIMIT many)
$$;

-- All vectors, to be asked for by their rows' ids.
CREATE FUNCTION search_vectors(f search_filter, model integer) RETURNS TABLE (id bigint, embedding halfvec)
LANGUAGE sql STABLE
AS $$
  SELECT e.message_id, e.embedding FROM embeddings e WHERE f.source = 'messages' AND e.model_id = model
  UNION ALL
  SELECT e.passage_id, e.embedding FROM embeddings e WHERE f.source = 'passages' AND e.model_id = model
$$;

-- The ranked ids of one page.
CREATE FUNCTION search_ranked(f search_filter, query text, query_embedding halfvec, model integer, lim integer, off integer, floor float8,
  about tstzmultirange, time_words text) RETURNS TABLE (id bigint, score float8, total bigint)
LANGUAGE plpgsql ROWS 20 SET search_path = keepsake, public, pg_temp SET jit = off SET enable_seqscan = off SET enable_nestloop = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  source CONSTANT text := f.source;
  agent CONSTANT bigint := f.agent;
  places CONSTANT bigint[] := f.whole || f.public || f.shared;
  before CONSTANT timestamptz := f.before;
  after CONSTANT timestamptz := f.after;
  phrases CONSTANT text[] := search_phrases(query);
  patterns CONSTANT text[] := ARRAY(SELECT '%' || regexp_replace(phrase, '([\\%_])', '\\\1', 'g') || '%' FROM unnest(phrases) phrase);
  terms CONSTANT text[] := ARRAY(SELECT DISTINCT word FROM unnest(search_words(left(query, 2000), false)) word WHERE word <> '' ORDER BY word LIMIT 200);
  of_phrases CONSTANT text[] := search_words(left(array_to_string(phrases, ' '), 2000), false);
  w record;          -- the weights
  own bigint;        -- how many rows the agent has, about
  usual record;      -- mean and spread of closeness
  is_question CONSTANT boolean := query ~ '[?？]\s*$';
  signs CONSTANT varbit := binary_quantize(query_embedding);
  of_time CONSTANT tsquery := (SELECT string_agg(search_query(word)::text, ' | ')::tsquery FROM unnest(search_words(time_words, false)) word WHERE word <> '');
  many integer;      -- vectors that are looked at closely: more where some will not be wanted
BEGIN
  SELECT * INTO w FROM search_weights();
  many := w.nearest * CASE WHEN f.roles IS NULL AND f.tags IS NULL THEN 2 ELSE 10 END;
  IF query_embedding IS NOT NULL AND vector_dims(query_embedding) IS DISTINCT FROM (SELECT m.dims FROM embedding_models m WHERE m.id = model) THEN
    query_embedding := NULL;  -- the vector is of another model: words alone are better than an error
  END IF;

  -- Nothing to look for: the newest first.
  IF phrases = '{}' AND query_embedding IS NULL THEN
    RETURN QUERY
      SELECT page.id, 0::float8, counted.total
      FROM (SELECT count(*) AS total FROM (SELECT FROM search_rows(f) r WHERE r.owner = agent AND r.wanted LIMIT w.most + 1) _) counted
      LEFT JOIN (SELECT r.id, r.created_at FROM search_rows(f) r WHERE r.owner = agent AND r.wanted ORDER BY r.created_at DESC, r.id DESC LIMIT lim OFFSET off) page ON true
      ORDER BY page.created_at DESC, page.id DESC;
    RETURN;
  END IF;

  -- What is usual: the agent's size (counted while that is cheap), and how close its first rows are.
  own := CASE f.source
    WHEN 'messages' THEN greatest((SELECT count(*) FROM (SELECT FROM messages m WHERE m.agent_id = f.agent LIMIT w.exact + 1) _),
                                  (SELECT sum(c.next_position - 1) FROM conversations c WHERE c.agent_id = f.agent))
    ELSE (SELECT count(*) FROM (SELECT FROM passages p WHERE p.agent_id = f.agent LIMIT 10 * w.exact) _) END;
  SELECT avg(c.closeness) AS mean, nullif(stddev_pop(c.closeness), 0) AS spread INTO usual
  FROM (SELECT -(v.embedding <#> query_embedding) AS closeness FROM search_own_vectors(source, agent, places, before, after, model) v LIMIT w.sample) c;

  RETURN QUERY
  WITH
  -- 1. Words: the rows that have each of them, up to a limit of rows a word.
  hits AS MATERIALIZED (
    SELECT t.nth, hit.id FROM unnest(terms) WITH ORDINALITY t (term, nth)
    CROSS JOIN LATERAL (SELECT r.id FROM search_rows(f) r WHERE r.keys @> ARRAY[hashtextextended(t.term, f.agent)] AND r.wanted LIMIT w.common + 1) hit
  ), sampled AS MATERIALIZED (
    SELECT r.tsv FROM search_rows(f) r WHERE r.owner = agent LIMIT w.sample
  ), counts AS MATERIALIZED (
    SELECT t.nth, t.term, t.word, coalesce(h.rows, 0) > w.common AS common,
      CASE WHEN h.rows > w.common THEN greatest(h.rows, own * (SELECT avg((s.tsv @@ t.word)::integer) FROM sampled s)) ELSE coalesce(h.rows, 0) END AS rows
    FROM (SELECT nth, term, search_query(term) AS word FROM unnest(terms) WITH ORDINALITY _ (term, nth)) t
    LEFT JOIN (SELECT hits.nth, count(*) AS rows FROM hits GROUP BY hits.nth) h USING (nth)
  ), weighed AS MATERIALIZED (
    SELECT c.nth, c.term, c.word, NOT c.common OR NOT EXISTS (SELECT FROM counts o WHERE NOT o.common AND o.rows > 0) AS matches,
      c.rarity * sqrt(15 / greatest(sum(c.rarity) FILTER (WHERE c.rows > 0) OVER (), 3)) AS weight
    FROM (SELECT *, 6.3 / ln(1 + greatest(own, 10)) * ln(1 + (greatest(own - rows, 0) + 0.5) / (rows + 0.5)) AS rarity FROM counts) c
  ), words AS MATERIALIZED (
    SELECT h.id, count(*) AS terms, sum(g.weight) AS words FROM hits h JOIN weighed g USING (nth) WHERE g.matches GROUP BY h.id
  ),
  -- 2. The text itself: among the rows with most words of the phrases (the ends of a phrase may be parts of words); if no row has any word of
  -- the query, among the newest rows.
  found AS MATERIALIZED (
    SELECT r.id FROM search_rows(f) r
    WHERE r.id = ANY (ARRAY(SELECT words.id FROM words
        WHERE words.terms >= 0.7 * (SELECT count(*) FROM weighed WHERE weighed.matches AND weighed.term = ANY (of_phrases))))
      AND patterns <> '{}' AND lower(r.content) LIKE ALL (patterns)
    UNION ALL
    SELECT r.id FROM (SELECT r.id, r.content FROM search_rows(f) r WHERE r.owner = agent AND r.wanted AND NOT EXISTS (SELECT FROM words)
                      ORDER BY r.created_at DESC LIMIT w.common) r
    WHERE patterns <> '{}' AND lower(r.content) LIKE ALL (patterns)
  ),
  -- 3. Meaning, as an inner product, because all vectors have length one: the nearest of the agent's own, exactly; of many, the exactly nearest of those with the nearest signatures.
  close AS MATERIALIZED (
    (SELECT v.id, -(v.embedding <#> query_embedding) AS closeness FROM search_own_vectors(source, agent, places, before, after, model) v WHERE own <= w.exact AND query_embedding IS NOT NULL
     ORDER BY 2 DESC LIMIT many)
    UNION ALL
    SELECT v.id, -(v.embedding <#> query_embedding) FROM search_vectors(f, model) v WHERE v.id = ANY (ARRAY(
      SELECT s.id FROM search_alike(source, agent, places, before, after, model, signs, many) s WHERE own > w.exact AND query_embedding IS NOT NULL))
  ), near AS MATERIALIZED (
    SELECT c.id, c.closeness, row_number() OVER (ORDER BY c.closeness DESC, c.id) AS rank
    FROM search_rows(f) r JOIN close c ON c.id = r.id WHERE r.id = ANY (ARRAY(SELECT close.id FROM close)) AND r.wanted ORDER BY 3 LIMIT w.nearest
  ),
  -- 4. The best of all these, and what was said around the best of them.
  seeds AS MATERIALIZED (
    SELECT s.id, w.meaning * coalesce((max(s.closeness) - usual.mean) / usual.spread, 0) + w.words * coalesce(max(s.words), 0) AS score
    FROM (SELECT near.id, near.closeness, NULL::float8 AS words FROM near
          UNION ALL (SELECT found.id, NULL, NULL FROM found ORDER BY found.id DESC LIMIT w.best_words)
          UNION ALL (SELECT words.id, NULL, words.words FROM words ORDER BY words.words DESC, words.id DESC LIMIT w.best_words)) s
    GROUP BY s.id
  ), best AS MATERIALIZED (
    SELECT r.thread, r.step FROM search_rows(f) r
    WHERE r.id = ANY (ARRAY(SELECT seeds.id FROM seeds ORDER BY seeds.score DESC, seeds.id DESC LIMIT w.best))
  ), family AS MATERIALIZED (
    SELECT seeds.id FROM seeds
    UNION SELECT n.id FROM best b CROSS JOIN LATERAL (SELECT m.id FROM messages m
      WHERE f.source = 'messages' AND m.conversation_id = b.thread AND m.position BETWEEN b.step - 12 AND b.step - 1
        AND m.searchable AND m.agent_id = f.agent AND search_usable(f, m.place_id, m.visibility, m.shareable) ORDER BY m.position DESC LIMIT 2) n
    UNION SELECT n.id FROM best b CROSS JOIN LATERAL (SELECT m.id FROM messages m
      WHERE f.source = 'messages' AND m.conversation_id = b.thread AND m.position BETWEEN b.step + 1 AND b.step + 12
        AND m.searchable AND m.agent_id = f.agent AND search_usable(f, m.place_id, m.visibility, m.shareable) ORDER BY m.position LIMIT 2) n
  ),
  -- 5. What each of these says for itself. A row without a vector counts as average.
  told AS MATERIALIZED (
    SELECT r.id, r.thread, r.step, r.author, r.wanted, r.content ~ '[?？]\s*$' AS asks, e.closeness,
      coalesce((e.closeness - usual.mean) / usual.spread, 0) AS meaning,
      (SELECT coalesce(sum(g.weight), 0) FROM weighed g WHERE r.tsv @@ g.word) AS words,
      coalesce(r.created_at <@ about, false) AS of_the_day, coalesce(r.tsv @@ of_time, false) AS tells_time
    FROM search_rows(f) r
    LEFT JOIN (SELECT v.id, -(v.embedding <#> query_embedding) AS closeness FROM search_vectors(f, model) v
               WHERE v.id = ANY (ARRAY(SELECT family.id FROM family)) AND query_embedding IS NOT NULL) e ON e.id = r.id
    WHERE r.id = ANY (ARRAY(SELECT family.id FROM family))
  ), named AS MATERIALIZED (
    SELECT min(a.author) AS author FROM (SELECT author, search_words(author, false) AS names FROM (SELECT DISTINCT told.author FROM told) _ OFFSET 0) a
    WHERE a.names <> '{}' AND a.names <@ terms HAVING count(*) = 1
  ),
  -- 6. With its neighbours, as far as no more than a handful of calls and results are between.
  eased AS (
    SELECT t.*,
      w.meaning * t.meaning + w.words * t.words
      + CASE WHEN t.step - lag(t.step) OVER talk <= 6 THEN lag(w.meaning_beside * t.meaning + (w.words_beside + CASE WHEN t.asks THEN w.answers ELSE 0 END) * t.words) OVER talk ELSE 0 END
      + CASE WHEN lead(t.step) OVER talk - t.step <= 6 THEN lead(w.meaning_beside * t.meaning + w.words_beside * t.words) OVER talk ELSE 0 END
      + CASE WHEN t.step - lag(t.step, 2) OVER talk <= 12 THEN lag(w.meaning_next_but_one * t.meaning + w.words_next_but_one * t.words, 2) OVER talk ELSE 0 END
      + CASE WHEN lead(t.step, 2) OVER talk - t.step <= 12 THEN lead(w.meaning_next_but_one * t.meaning + w.words_next_but_one * t.words, 2) OVER talk ELSE 0 END
      + CASE WHEN t.author = (SELECT named.author FROM named) THEN w.speaker ELSE 0 END + CASE WHEN t.asks AND is_question THEN w.question ELSE 0 END
      + CASE WHEN t.of_the_day THEN w.day ELSE 0 END + CASE WHEN t.tells_time THEN w.time_words ELSE 0 END AS score
    FROM told t WINDOW talk AS (PARTITION BY t.thread ORDER BY t.step)
  ),
  -- 7. Which of them match, with the matches that were not looked at so closely. Rounded, so that the order of adding up floats can never
  -- reorder rows between two pages.
  matched AS MATERIALIZED (
    SELECT e.id, round((e.score * 1e6)::numeric)::float8 / 1e6 AS score, e.id IN (SELECT found.id FROM found) AS first, true AS whole
    FROM eased e LEFT JOIN near ON near.id = e.id
    WHERE e.wanted AND (e.id IN (SELECT words.id FROM words) OR e.id IN (SELECT found.id FROM found)
      OR (near.closeness >= floor AND near.rank <= 50 AND (near.rank <= 10 OR e.meaning >= 1)))
    UNION ALL
    SELECT o.id, max(o.words), bool_or(o.first), false
    FROM (SELECT words.id, words.words, false AS first FROM words UNION ALL SELECT found.id, 0, true FROM found) o
    WHERE o.id NOT IN (SELECT family.id FROM family) GROUP BY o.id
  )
  -- 8. One page.
  SELECT page.id, page.score, counted.total
  FROM (SELECT count(*) AS total FROM (SELECT FROM matched LIMIT w.most + 1) _) counted
  LEFT JOIN (SELECT * FROM matched ORDER BY matched.first DESC, matched.whole DESC, matched.score DESC, matched.id DESC LIMIT lim OFFSET off) page ON true
  ORDER BY page.first DESC, page.whole DESC, page.score DESC, page.id DESC;
END $$;

-- A word as a tsquery that matches exactly it.
CREATE FUNCTION search_query(word text) RETURNS tsquery LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT ('''' || replace(replace(word, '\', '\\'), '''', '''''') || '''')::tsquery $$;

-- The texts that put a row first: what the query quotes, else the query itself.
CREATE FUNCTION search_phrases(query text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
  SELECT CASE WHEN quoted <> '{}' THEN quoted WHEN btrim(query, E' \t\r\n') <> '' THEN ARRAY[lower(btrim(query, E' \t\r\n'))] ELSE '{}' END
  FROM (SELECT ARRAY(SELECT lower(btrim(part[1])) FROM regexp_matches(query, '["“”„«「『]([^"“”„«»「」『』]+)["“”»」』]', 'g') part
                     WHERE btrim(part[1]) <> '')) _ (quoted)
$$;
