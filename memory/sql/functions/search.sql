-- Search of recall storage and archival storage: words and meaning blended.
--
-- The agent and the places come from the session's settings, never from arguments; the functions belong to the owner,
-- because under the bot's row-level security the text operator cannot use its index.
--
-- What a match is: a row that shares a word with the query, or (when no row shares one) contains the query's text, or is
-- among the `nearest` rows in meaning and either in the first ten of those or one standard deviation nearer than the average.
-- Order: rows that contain the quoted parts of the query (the whole query, when nothing is quoted) first; then by score; then the newest.
-- Score of a row: meaning_share * z(cosine) + (1 - meaning_share) * z(sum of the shared words' inverse document frequencies),
-- plus a half of the scores of the messages next to it and a quarter of the next but one (measured on LoCoMo, see memory/search.py).
-- With more than `exact_limit` rows an agent is searched in two stages by estimates; see search_ranked_large for what differs.

-- One page of recall storage, best first. `after` is inclusive, `before` is not; of the roles, `quote` means somebody else's
-- quoted words. A blank query without a vector lists the newest first.
CREATE FUNCTION search_messages(
  query text, query_embedding halfvec DEFAULT NULL, model integer DEFAULT NULL, roles text[] DEFAULT NULL,
  before timestamptz DEFAULT NULL, after timestamptz DEFAULT NULL, lim integer DEFAULT 10, off integer DEFAULT 0,
  meaning_share float8 DEFAULT 0.5, floor float8 DEFAULT 0, exact_limit integer DEFAULT 20000
) RETURNS TABLE (id bigint, score float8, total bigint, content text, author_name text, role text, kind text, visibility text, created_at timestamptz,
  place_id bigint, place_kind text, place_name text, platform text, workspace text)
LANGUAGE sql SECURITY DEFINER SET search_path = keepsake, public, pg_temp
AS $$
  SELECT r.id, r.score, r.total, m.content, m.author_name, m.role, m.kind, m.visibility, m.created_at,
     p.id, p.kind, p.name, p.platform, p.workspace
  FROM search_ranked('messages', query, query_embedding, model, roles, NULL, before, after, lim, off, meaning_share, floor, exact_limit)
    WITH ORDINALITY r (id, score, total, nth)
  LEFT JOIN messages m ON m.id = r.id LEFT JOIN places p ON p.id = m.place_id
  ORDER BY r.nth
$$;

-- One page of archival storage; with `tags`, of the passages that have any of them.
CREATE FUNCTION search_passages(
  query text, query_embedding halfvec DEFAULT NULL, model integer DEFAULT NULL, tags text[] DEFAULT NULL,
  before timestamptz DEFAULT NULL, after timestamptz DEFAULT NULL, lim integer DEFAULT 10, off integer DEFAULT 0,
  meaning_share float8 DEFAULT 0.5, floor float8 DEFAULT 0, exact_limit integer DEFAULT 20000
) RETURNS TABLE (id bigint, score float8, total bigint, content text, author_name text, tags_of text[], visibility text, created_at timestamptz,
  place_id bigint, place_kind text, place_name text, platform text, workspace text)
LANGUAGE sql SECURITY DEFINER SET search_path = keepsake, public, pg_temp
AS $$
  SELECT r.id, r.score, r.total, a.content, a.author_name, a.tags, a.visibility, a.created_at,
     p.id, p.kind, p.name, p.platform, p.workspace
  FROM search_ranked('passages', query, query_embedding, model, NULL, tags, before, after, lim, off, meaning_share, floor, exact_limit)
    WITH ORDINALITY r (id, score, total, nth)
  LEFT JOIN passages a ON a.id = r.id LEFT JOIN places p ON p.id = a.place_id
  ORDER BY r.nth
$$;

-- The ranked ids of one page. Exactly one row has id null when the page is empty, so that the total is always known.
CREATE FUNCTION search_ranked(
  source text, query text, query_embedding halfvec, model integer, only_roles text[], only_tags text[],
  before timestamptz, after timestamptz, lim integer, off integer, meaning_share float8, floor float8, exact_limit integer
) RETURNS TABLE (id bigint, score float8, total bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = keepsake, public, pg_temp SET jit = off
AS $$
DECLARE
  terms text[] := ARRAY(SELECT DISTINCT word FROM unnest(search_words(left(query, 2000), false)) word WHERE word <> ''
                        ORDER BY word LIMIT 200);
  phrases CONSTANT text[] := search_phrases(query);
  -- a row with the phrase has its words; the ends of a phrase may be parts of words
  needed CONSTANT float8 := 0.7 * (SELECT count(DISTINCT word) FROM unnest(search_words(left(array_to_string(phrases, ' '), 2000), false)) word
                                   WHERE word = ANY (terms));
  mine CONSTANT text := 'm.agent_id = $1 AND (m.place_id = ANY ($2) OR (m.visibility = ''public'' AND m.place_id = ANY ($3))'
    || ' OR (m.shareable AND m.place_id = ANY ($4)))' || CASE source WHEN 'messages' THEN ' AND m.searchable' ELSE '' END;
  wanted CONSTANT text := '($5 IS NULL OR m.created_at < $5) AND ($6 IS NULL OR m.created_at >= $6) AND '
    || CASE source WHEN 'messages' THEN '($7 IS NULL OR CASE m.kind WHEN ''quote'' THEN ''quote'' ELSE m.role END = ANY ($7))' ELSE '($8 IS NULL OR m.tags && $8)' END;
  thread CONSTANT text := CASE source WHEN 'messages' THEN 'm.conversation_id AS thread, m.position AS step' ELSE 'm.id AS thread, 0::bigint AS step' END;
  link CONSTANT text := CASE source WHEN 'messages' THEN 'e.message_id' ELSE 'e.passage_id' END;
  size bigint;
  dims integer;
  near text;
BEGIN
  IF source NOT IN ('messages', 'passages') THEN
    RAISE EXCEPTION 'no such source';
  END IF;
  SELECT d.dims INTO dims FROM embedding_models d WHERE d.id = model;
  IF query_embedding IS NOT NULL AND vector_dims(query_embedding) IS DISTINCT FROM dims THEN
    query_embedding := NULL;  -- the vector is of another model: words alone are better than an error
  END IF;
  IF phrases = '{}' AND query_embedding IS NULL THEN
    RETURN QUERY EXECUTE format($q$
      SELECT page.id, 0::float8, counted.total
      FROM (SELECT count(*) AS total FROM %1$I m WHERE %2$s AND %3$s) counted
      LEFT JOIN (SELECT m.id, m.created_at FROM %1$I m WHERE %2$s AND %3$s ORDER BY m.created_at DESC, m.id DESC LIMIT $9 OFFSET $10) page ON true
      ORDER BY page.created_at DESC, page.id DESC $q$, source, mine, wanted)
    USING current_agent(), whole_places(), public_places(), shared_places(), before, after, only_roles, only_tags, lim, off;
    RETURN;
  END IF;

  EXECUTE format('SELECT count(*) FROM %I WHERE agent_id = $1', source) INTO size USING current_agent();
  IF size > exact_limit THEN
    RETURN QUERY SELECT * FROM search_ranked_large(source, terms, phrases, query_embedding, model, dims, only_roles, only_tags, before, after,
      lim, off, meaning_share, floor, size, mine, wanted, thread);
    RETURN;
  END IF;
  IF query_embedding IS NULL THEN
    near := 'SELECT NULL::bigint AS id, NULL::float8 AS closeness WHERE false';
  ELSE
    near := format('SELECT %1$s AS id, 1 - (e.embedding <=> $11) AS closeness FROM embeddings e'
      || ' WHERE e.agent_id = $1 AND e.model_id = %2$s AND %1$s IS NOT NULL', link, model);
  END IF;

  -- Unions, groups and windows instead of joins: a new database has no statistics, and a planner that expects one row
  -- would loop over all pairs.
  RETURN QUERY EXECUTE format($q$
    WITH hits AS MATERIALIZED (
      SELECT term, hit.id FROM unnest($12) term
      CROSS JOIN LATERAL (SELECT m.id FROM %1$I m WHERE m.tsv @@ search_query(term) AND %2$s) hit
    ), words AS MATERIALIZED (
      SELECT h.id, count(*) AS terms, sum(ln(1 + (greatest($13 - h.rows, 0) + 0.5) / (h.rows + 0.5)))::float8 AS words
      FROM (SELECT hits.id, count(*) OVER (PARTITION BY term) AS rows FROM hits) h GROUP BY h.id
    ), found AS MATERIALIZED (
      SELECT m.id FROM %1$I m WHERE m.id = ANY (ARRAY(SELECT words.id FROM words WHERE terms >= $15)) AND search_contains(m.content, $14)
      UNION ALL
      SELECT m.id FROM %1$I m WHERE %2$s AND %3$s AND NOT (SELECT EXISTS (SELECT FROM words)) AND search_contains(m.content, $14)
    ), near AS MATERIALIZED (
      %4$s
    ), scored AS MATERIALIZED (
      SELECT part.id, max(part.thread) AS thread, max(part.step) AS step, bool_or(part.wanted) AS wanted,
             coalesce(max(part.words), 0) AS words, max(part.closeness) AS closeness, bool_or(part.found) AS first
      FROM (
        SELECT m.id, %5$s, %3$s AS wanted, NULL::float8 AS words, NULL::float8 AS closeness, false AS found FROM %1$I m WHERE %2$s
        UNION ALL SELECT words.id, NULL, NULL, NULL, words.words, NULL, false FROM words
        UNION ALL SELECT near.id, NULL, NULL, NULL, NULL, near.closeness, false FROM near
        UNION ALL SELECT found.id, NULL, NULL, NULL, NULL, NULL, true FROM found
      ) part
      GROUP BY part.id HAVING count(part.thread) > 0
    ), reckoned AS (
      -- a row without a vector counts as average
      SELECT s.*, coalesce(s.closeness, avg(s.closeness) OVER ()) AS reckoned FROM scored s
    ), blended AS (
      SELECT r.*, coalesce((r.reckoned - avg(r.closeness) OVER every) / nullif(stddev_pop(r.closeness) OVER every, 0), 0) AS z_meaning,
             coalesce((r.words - avg(r.words) OVER every) / nullif(stddev_pop(r.words) OVER every, 0), 0) AS z_words
      FROM reckoned r WINDOW every AS ()
    ), own AS (
      SELECT b.*, $16 * b.z_meaning + (1 - $16) * b.z_words AS own FROM blended b
    ), eased AS (
      SELECT b.*, row_number() OVER (PARTITION BY b.wanted ORDER BY b.closeness DESC NULLS LAST, b.id) AS rank, %6$s AS score
      FROM own b WINDOW talk AS (PARTITION BY b.thread ORDER BY b.step)
    ), matched AS MATERIALIZED (
      -- rounded, so that the order of adding up floats can never reorder rows between two pages
      SELECT e.id, round(e.score * 1e6) / 1e6 AS score, e.first FROM eased e
      WHERE e.wanted AND (e.words > 0 OR e.first
        OR (e.closeness >= $17 AND e.rank <= 50 AND (e.rank <= 10 OR e.z_meaning >= 1)))
    )
    SELECT page.id, page.score, counted.total
    FROM (SELECT count(*) AS total FROM matched) counted
    LEFT JOIN (SELECT * FROM matched ORDER BY first DESC, score DESC, id DESC LIMIT $9 OFFSET $10) page ON true
    ORDER BY page.first DESC, page.score DESC, page.id DESC
  $q$, source, mine, wanted, near, thread, search_eased(source))
  USING current_agent(), whole_places(), public_places(), shared_places(), before, after, only_roles, only_tags, lim, off,
    query_embedding, terms, size, phrases, needed, meaning_share, floor;
END $$;

-- The same for an agent with more rows than are scored one by one. What the small search takes from all rows is estimated from some
-- hundred of them, taken at even distances of time (so that every page is ranked alike): how common each word is, and the mean and spread of
-- closeness. A word in more than `common` rows makes no match by itself when the query has a rarer one; it counts in the scores all the same.
-- Scored are the best rows by words, the nearest by the HNSW index, what contains the phrases, and the neighbours of the best of
-- these; the other rows with a rare word follow by their words.
CREATE FUNCTION search_ranked_large(
  source text, terms text[], phrases text[], query_embedding halfvec, model integer, dims integer, only_roles text[], only_tags text[],
  before timestamptz, after timestamptz, lim integer, off integer, meaning_share float8, floor float8, size bigint,
  mine text, wanted text, thread text, common bigint DEFAULT 5000, sampled integer DEFAULT 400
) RETURNS TABLE (id bigint, score float8, total bigint)
LANGUAGE plpgsql SET jit = off
AS $$
DECLARE
  link CONSTANT text := CASE source WHEN 'messages' THEN 'message_id' ELSE 'passage_id' END;
  sample bigint[];
  shares float8[];   -- of each term, the share of rows that have it
  rare text[];
  weights float8[];  -- of each term, its inverse document frequency
  words_mean float8;
  words_spread float8;
  meaning_mean float8;
  meaning_spread float8;
  hits bigint[];
  needed float8;
BEGIN
  EXECUTE format($q$
    SELECT ARRAY(SELECT DISTINCT probe.id FROM (SELECT min(created_at) AS first, max(created_at) AS last FROM %1$I WHERE agent_id = $1) span
      CROSS JOIN generate_series(0, $9 - 1) step
      CROSS JOIN LATERAL (SELECT * FROM %1$I WHERE agent_id = $1 AND created_at >= first + (last - first) * (step::float8 / $9)
                          ORDER BY created_at LIMIT 1) probe
      JOIN %1$I m ON m.id = probe.id WHERE %2$s) $q$, source, mine)
    INTO sample USING current_agent(), whole_places(), public_places(), shared_places(), before, after, only_roles, only_tags, sampled;
  EXECUTE format($q$
    SELECT array_agg(share ORDER BY nth) FROM (
      SELECT nth, (SELECT count(*) FROM %I m WHERE m.id = ANY ($1) AND m.tsv @@ search_query(term))::float8 / greatest(cardinality($1), 1) AS share
      FROM unnest($2) WITH ORDINALITY _ (term, nth)) counted $q$, source) INTO shares USING sample, terms;
  SELECT array_agg(term) INTO rare FROM unnest(terms, shares) _ (term, share) WHERE share * size <= common;
  IF rare IS NULL THEN
    rare := ARRAY(SELECT term FROM unnest(terms, shares) _ (term, share) ORDER BY share, term LIMIT 1);
  END IF;
  needed := 0.7 * (SELECT count(DISTINCT word) FROM unnest(search_words(left(array_to_string(phrases, ' '), 2000), false)) word WHERE word = ANY (rare));
  IF query_embedding IS NOT NULL THEN
    EXECUTE format('SELECT avg(c), stddev_pop(c) FROM (SELECT 1 - (e.embedding <=> $1) AS c FROM embeddings e WHERE e.%I = ANY ($2) AND e.model_id = %s) _',
      link, model) INTO meaning_mean, meaning_spread USING query_embedding, sample;
  END IF;
  PERFORM set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '200', true);

  RETURN QUERY EXECUTE format($q$
    WITH hits AS MATERIALIZED (
      SELECT term, hit.id FROM unnest($12) term
      CROSS JOIN LATERAL (SELECT m.id FROM %1$I m WHERE m.tsv @@ search_query(term) AND %2$s AND %3$s) hit
    ), counts AS MATERIALIZED (
      SELECT t.term, coalesce(h.rows, t.share * $13) AS rows, ln(1 + (greatest($13 - coalesce(h.rows, t.share * $13), 0) + 0.5) / (coalesce(h.rows, t.share * $13) + 0.5)) AS weight
      FROM unnest($18, $19) t (term, share) LEFT JOIN (SELECT term, count(*)::float8 AS rows FROM hits GROUP BY term) h USING (term)
    ), spread AS MATERIALIZED (
      SELECT coalesce(sum(rows / $13 * weight), 0)::float8 AS mean, coalesce(sqrt(sum(rows / $13 * (1 - rows / $13) * weight * weight)), 0)::float8 AS sigma
      FROM counts
    ), words AS MATERIALIZED (
      SELECT h.id, count(*) AS terms, sum(weight)::float8 AS words FROM hits h JOIN counts USING (term) GROUP BY h.id
    ), found AS MATERIALIZED (
      SELECT m.id FROM %1$I m WHERE m.id = ANY (ARRAY(SELECT words.id FROM words WHERE terms >= $15)) AND search_contains(m.content, $14)
      UNION ALL
      SELECT m.id FROM %1$I m WHERE %2$s AND %3$s AND NOT (SELECT EXISTS (SELECT FROM words)) AND search_contains(m.content, $14)
    ), near AS MATERIALIZED (
      %4$s
    ), seeds AS MATERIALIZED (
      SELECT ARRAY(SELECT near.id FROM near UNION (SELECT found.id FROM found ORDER BY found.id DESC LIMIT 400)
                   UNION (SELECT words.id FROM words ORDER BY words.words DESC, words.id DESC LIMIT 400)) AS ids
    ), first_scores AS MATERIALIZED (
      SELECT m.id, m.thread, m.step, m.words, coalesce((e.closeness - $20) / nullif($21, 0), 0) AS z FROM (
        SELECT m.id, %5$s, (SELECT coalesce(sum(weight), 0)::float8 FROM counts WHERE m.tsv @@ search_query(term)) AS words
        FROM %1$I m WHERE m.id = ANY ((SELECT ids FROM seeds)::bigint[])) m
      LEFT JOIN (SELECT e.%7$I AS id, 1 - (e.embedding <=> $11) AS closeness FROM embeddings e
                 WHERE e.%7$I = ANY ((SELECT ids FROM seeds)::bigint[]) AND e.model_id = %8$s) e USING (id)
    ), best AS MATERIALIZED (
      SELECT f.thread, f.step FROM first_scores f, spread
      ORDER BY $16 * f.z + (1 - $16) * coalesce((f.words - spread.mean) / nullif(spread.sigma, 0), 0) DESC, f.id LIMIT 150
    ), candidates AS MATERIALIZED (
      SELECT ARRAY(SELECT unnest(ids) FROM seeds UNION %9$s) AS ids
    ), scored AS MATERIALIZED (
      SELECT m.id, m.thread, m.step, m.wanted, m.words, e.closeness, m.id = ANY (ARRAY(SELECT found.id FROM found)) AS first,
             coalesce((e.closeness - $20) / nullif($21, 0), 0) AS z_meaning
      FROM (SELECT m.id, %5$s, %3$s AS wanted, (SELECT coalesce(sum(weight), 0)::float8 FROM counts WHERE m.tsv @@ search_query(term)) AS words
            FROM %1$I m WHERE m.id = ANY ((SELECT ids FROM candidates)::bigint[]) AND %2$s) m
      LEFT JOIN (SELECT e.%7$I AS id, 1 - (e.embedding <=> $11) AS closeness FROM embeddings e
                 WHERE e.%7$I = ANY ((SELECT ids FROM candidates)::bigint[]) AND e.model_id = %8$s) e USING (id)
    ), own AS (
      SELECT s.*, $16 * s.z_meaning + (1 - $16) * coalesce((s.words - spread.mean) / nullif(spread.sigma, 0), 0) AS own FROM scored s, spread
    ), eased AS (
      SELECT b.*, row_number() OVER (PARTITION BY b.wanted ORDER BY b.closeness DESC NULLS LAST, b.id) AS rank, %6$s AS score
      FROM own b WINDOW talk AS (PARTITION BY b.thread ORDER BY b.step)
    ), matched AS MATERIALIZED (
      SELECT e.id, round(e.score * 1e6) / 1e6 AS score, e.first, true AS whole FROM eased e
      WHERE e.wanted AND (e.id = ANY (ARRAY(SELECT words.id FROM words)) OR e.first
        OR (e.closeness >= $17 AND e.rank <= 50 AND (e.rank <= 10 OR e.z_meaning >= 1)))
      UNION ALL
      SELECT w.id, round(w.words * 1e6) / 1e6, w.first, false FROM (
        SELECT words.id, words.words, false AS first FROM words WHERE NOT words.id = ANY (ARRAY(SELECT found.id FROM found))
        UNION ALL SELECT found.id, 0, true FROM found) w
      WHERE NOT w.id = ANY ((SELECT ids FROM candidates)::bigint[])
    )
    SELECT page.id, page.score, counted.total
    FROM (SELECT count(*) AS total FROM matched) counted
    LEFT JOIN (SELECT * FROM matched ORDER BY first DESC, whole DESC, score DESC, id DESC LIMIT $9 OFFSET $10) page ON true
    ORDER BY page.first DESC, page.whole DESC, page.score DESC, page.id DESC
  $q$, source, mine, wanted,
    CASE WHEN query_embedding IS NULL THEN 'SELECT NULL::bigint AS id WHERE false' ELSE
      format('SELECT m.id FROM embeddings e JOIN %2$I m ON m.id = e.%3$I WHERE e.agent_id = $1 AND e.model_id = %4$s AND %5$s AND %6$s'
        || ' ORDER BY e.embedding::halfvec(%1$s) <=> $11::halfvec(%1$s) LIMIT 200', dims, source, link, model, mine, wanted) END,
    thread, search_eased(source), link, coalesce(model, 0),
    CASE source WHEN 'messages' THEN 'SELECT n.id FROM best CROSS JOIN LATERAL (SELECT m.id FROM messages m WHERE m.conversation_id = best.thread'
      || ' AND m.position BETWEEN best.step - 12 AND best.step + 12 AND m.searchable) n' ELSE 'SELECT NULL::bigint WHERE false' END)
  USING current_agent(), whole_places(), public_places(), shared_places(), before, after, only_roles, only_tags, lim, off,
    query_embedding, rare, size, phrases, needed, meaning_share, floor, terms, shares, meaning_mean, meaning_spread;
END $$;

-- The expression of a row's score from its own and those of its neighbours, over a window `talk`: a neighbour counts when at most a
-- handful of unsearchable rows (calls, results) stand between.
CREATE FUNCTION search_eased(source text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
  SELECT CASE source WHEN 'messages' THEN 'b.own
    + CASE WHEN b.step - lag(b.step) OVER talk <= 6 THEN 0.5 * lag(b.own) OVER talk ELSE 0 END
    + CASE WHEN lead(b.step) OVER talk - b.step <= 6 THEN 0.5 * lead(b.own) OVER talk ELSE 0 END
    + CASE WHEN b.step - lag(b.step, 2) OVER talk <= 12 THEN 0.25 * lag(b.own, 2) OVER talk ELSE 0 END
    + CASE WHEN lead(b.step, 2) OVER talk - b.step <= 12 THEN 0.25 * lead(b.own, 2) OVER talk ELSE 0 END' ELSE 'b.own' END
$$;

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

-- Whether a text has all of the phrases, whatever their case.
CREATE FUNCTION search_contains(content text, phrases text[]) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT bool_and(position(phrase IN lower(content)) > 0) FROM unnest(phrases) phrase $$;
