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

CREATE FUNCTION search_contains(content text, phrases text[]) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT bool_and(position(phrase IN lower(content)) > 0) FROM unnest(phrases) phrase $$;

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
  few boolean;
  size bigint;
  dims integer;
  near text;
  candidates text;
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
  few := size <= exact_limit;
  IF query_embedding IS NULL THEN
    near := 'SELECT NULL::bigint AS id, NULL::float8 AS closeness WHERE false';
  ELSIF few THEN
    near := format('SELECT %1$s AS id, 1 - (e.embedding <=> $11) AS closeness FROM embeddings e'
      || ' WHERE e.agent_id = $1 AND e.model_id = %2$s AND %1$s IS NOT NULL', link, model);
  ELSE
    PERFORM set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '200', true);
    near := format('SELECT m.id, 1 - (e.embedding::halfvec(%1$s) <=> $11::halfvec(%1$s)) AS closeness'
      || ' FROM embeddings e JOIN %2$I m ON m.id = %3$s WHERE e.agent_id = $1 AND e.model_id = %4$s AND %5$s AND %6$s'
      || ' ORDER BY e.embedding::halfvec(%1$s) <=> $11::halfvec(%1$s) LIMIT 200', dims, source, link, model, mine, wanted);
  END IF;
  candidates := CASE WHEN few THEN '' ELSE
    ' AND m.id = ANY (ARRAY(SELECT id FROM words UNION SELECT id FROM near UNION SELECT id FROM found))' END;

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
        SELECT m.id, %5$s, %3$s AS wanted, NULL::float8 AS words, NULL::float8 AS closeness, false AS found FROM %1$I m WHERE %2$s %6$s
        UNION ALL SELECT words.id, NULL, NULL, NULL, words.words, NULL, false FROM words
        UNION ALL SELECT near.id, NULL, NULL, NULL, NULL, near.closeness, false FROM near
        UNION ALL SELECT found.id, NULL, NULL, NULL, NULL, NULL, true FROM found
      ) part
      GROUP BY part.id HAVING count(part.thread) > 0
    ), reckoned AS (
      SELECT s.*, coalesce(s.closeness, %8$s(s.closeness) OVER ()) AS reckoned FROM scored s
    ), blended AS (
      SELECT r.*, coalesce((r.reckoned - avg(r.closeness) OVER every) / nullif(stddev_pop(r.closeness) OVER every, 0), 0) AS z_meaning,
             coalesce((r.words - avg(r.words) OVER every) / nullif(stddev_pop(r.words) OVER every, 0), 0) AS z_words
      FROM reckoned r WINDOW every AS ()
    ), own AS (
      SELECT b.*, $16 * b.z_meaning + (1 - $16) * b.z_words AS own FROM blended b
    ), eased AS (
      SELECT b.*, row_number() OVER (PARTITION BY b.wanted ORDER BY b.closeness DESC NULLS LAST, b.id) AS rank, %7$s AS score
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
  $q$, source, mine, wanted, near, thread, candidates,
    -- a neighbour counts when at most a handful of unsearchable rows (calls, results) stand between
    CASE source WHEN 'messages' THEN 'b.own
      + CASE WHEN b.step - lag(b.step) OVER talk <= 6 THEN 0.5 * lag(b.own) OVER talk ELSE 0 END
      + CASE WHEN lead(b.step) OVER talk - b.step <= 6 THEN 0.5 * lead(b.own) OVER talk ELSE 0 END
      + CASE WHEN b.step - lag(b.step, 2) OVER talk <= 12 THEN 0.25 * lag(b.own, 2) OVER talk ELSE 0 END
      + CASE WHEN lead(b.step, 2) OVER talk - b.step <= 12 THEN 0.25 * lead(b.own, 2) OVER talk ELSE 0 END' ELSE 'b.own' END,
    -- a row without a vector counts as average, a row beyond the nearest 200 as the farthest of those
    CASE WHEN few THEN 'avg' ELSE 'min' END)
  USING current_agent(), whole_places(), public_places(), shared_places(), before, after, only_roles, only_tags, lim, off,
    query_embedding, terms, size, phrases, needed, meaning_share, floor;
END $$;
REVOKE ALL ON FUNCTION search_ranked FROM PUBLIC;

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
REVOKE ALL ON FUNCTION search_messages, search_passages FROM PUBLIC;
GRANT EXECUTE ON FUNCTION search_messages, search_passages TO keepsake_bot;
