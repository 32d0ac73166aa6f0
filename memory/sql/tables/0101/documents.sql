-- Documents -----------------------------------------------------------------------------------------------

ALTER TABLE documents ADD COLUMN pages integer NOT NULL DEFAULT 1;
GRANT UPDATE (shareable) ON documents TO keepsake_bot;
-- Where in its document a passage stands, and under which headings, whose words find it, too.
ALTER TABLE passages
  DROP COLUMN tsv,
  ADD COLUMN page integer,
  ADD COLUMN heading text NOT NULL DEFAULT '',
  ADD CONSTRAINT passages_page_check CHECK (document_id IS NULL OR page IS NOT NULL);
ALTER TABLE passages ADD COLUMN tsv tsvector GENERATED ALWAYS AS (search_vector(heading, content)) STORED;
CREATE INDEX passages_words ON passages USING gin (search_keys(agent_id, tsvector_to_array(tsv))) WITH (fastupdate = off);
CREATE INDEX passages_pages ON passages (document_id, page) WHERE document_id IS NOT NULL;
ALTER TABLE memory_log DROP CONSTRAINT memory_log_target_check;
ALTER TABLE memory_log ADD CONSTRAINT memory_log_target_check
  CHECK (target IN ('working_context', 'passage', 'message', 'summary', 'conversation', 'timer', 'document', 'everything'));
