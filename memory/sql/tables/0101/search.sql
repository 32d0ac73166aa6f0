-- Search finds rows by their owner: what it costs depends on the owner's own rows, however many others there are.

-- A word of an owner's as one number, so that the list of a word's rows holds one owner's rows alone. `owner` is an agent's id.
CREATE FUNCTION search_keys(owner bigint, words text[]) RETURNS bigint[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 10000  -- for the index, not for rows
AS $$ SELECT ARRAY(SELECT hashtextextended(word, owner) FROM unnest(words) word) $$;

DROP INDEX messages_words;
CREATE INDEX messages_words ON messages USING gin (search_keys(agent_id, tsvector_to_array(tsv))) WITH (fastupdate = off) WHERE searchable;
DROP INDEX passages_words;
CREATE INDEX passages_words ON passages USING gin (search_keys(agent_id, tsvector_to_array(tsv))) WITH (fastupdate = off);

-- Vectors are scanned within their owner's part of an index that holds all that a scan needs: the signs of the numbers, and what filters ask for.
DO $$
DECLARE name text;
BEGIN
  FOR name IN SELECT indexname FROM pg_indexes WHERE schemaname = 'keepsake' AND indexname LIKE 'embeddings\_hnsw\_%' LOOP
    EXECUTE format('DROP INDEX %I', name);
  END LOOP;
END $$;
ALTER TABLE embeddings
  ADD COLUMN place_id bigint,
  ADD COLUMN said_at timestamptz,   -- when the row was made
  ADD COLUMN signature varbit GENERATED ALWAYS AS (binary_quantize(embedding)::varbit) STORED;
UPDATE embeddings e SET place_id = m.place_id, said_at = m.created_at FROM messages m WHERE m.id = e.message_id;
UPDATE embeddings e SET place_id = p.place_id, said_at = p.created_at FROM passages p WHERE p.id = e.passage_id;
ALTER TABLE embeddings ALTER COLUMN place_id SET NOT NULL, ALTER COLUMN said_at SET NOT NULL;
DROP INDEX embeddings_agent_id_model_id_idx;
CREATE INDEX embeddings_messages ON embeddings (agent_id, model_id) INCLUDE (message_id, place_id, said_at, signature) WHERE message_id IS NOT NULL;
CREATE INDEX embeddings_passages ON embeddings (agent_id, model_id) INCLUDE (passage_id, place_id, said_at, signature) WHERE passage_id IS NOT NULL;

-- What a search looks among, as the functions of a search hand it on.
CREATE TYPE search_filter AS (
  source text,                          -- messages or passages
  agent bigint, whole bigint[], public bigint[], shared bigint[],   -- whose rows, of which places
  roles text[], tags text[], before timestamptz, after timestamptz,
  queue bigint, queue_from bigint, queue_whole integer              -- what is visible anyway, see search_messages
);
