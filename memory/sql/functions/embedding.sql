-- Vectors: which rows lack one, and of which model.

-- Agents with rows that lack a vector.
CREATE FUNCTION unembedded_agents(p_limit integer) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER AS $$ SELECT DISTINCT agent_id FROM unembedded LIMIT p_limit $$;

-- Makes a model known; a change of model queues every row without its vector.
CREATE FUNCTION use_embedding_model(p_name text, p_dims integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE model embedding_models;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('keepsake.embedding_models'));
  SELECT * INTO model FROM embedding_models WHERE name = p_name;
  IF NOT FOUND THEN
    INSERT INTO embedding_models (name, dims) VALUES (p_name, p_dims) RETURNING * INTO model;
  ELSIF model.dims <> p_dims THEN
    RAISE EXCEPTION 'embedding model % has % dimensions, not %', p_name, model.dims, p_dims USING ERRCODE = 'KS002';
  END IF;
  INSERT INTO unembedded (agent_id, message_id)
    SELECT m.agent_id, m.id FROM messages m WHERE m.searchable
      AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.message_id = m.id AND e.model_id = model.id) ON CONFLICT DO NOTHING;
  INSERT INTO unembedded (agent_id, passage_id)
    SELECT p.agent_id, p.id FROM passages p
      WHERE NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.passage_id = p.id AND e.model_id = model.id) ON CONFLICT DO NOTHING;
  RETURN model.id;
END $$;
