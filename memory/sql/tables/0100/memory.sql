-- What is kept of what people say. The indexes of turn_id and document_id are for erasures, which look up for every row that goes the rows that
-- hang on it.

CREATE TABLE messages (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id        bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  conversation_id bigint NOT NULL,
  place_id        bigint NOT NULL REFERENCES places,
  visibility      text NOT NULL CHECK (visibility IN ('direct', 'private', 'public')),
  shareable       boolean NOT NULL DEFAULT false,
  passing         boolean NOT NULL DEFAULT false,-- said while memory was paused: for the running conversation alone
  position        bigint NOT NULL,
  role            text NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
  kind            text NOT NULL CHECK (kind IN ('message', 'quote', 'event', 'monologue', 'call', 'result', 'alert')),
  asks            text CHECK (asks IN ('leave', 'zone', 'memory')),  -- the bot's own question: a plain yes or no right after it answers this alone
  author_id       text NOT NULL DEFAULT '',      -- platform:realm:user, so that erasing a person finds their quotes
  author_name     text NOT NULL DEFAULT '',
  content         text NOT NULL,
  calls           jsonb,                         -- the calls of an assistant message, as sent to the model
  call_id         text,                          -- what a result answers
  platform_id     text,                          -- the message's id on its platform; a quote's is `channel/message`
  event_id        bigint REFERENCES events ON DELETE SET NULL,
  turn_id         bigint REFERENCES turns ON DELETE SET NULL,
  searchable      boolean NOT NULL,
  created_at      timestamptz NOT NULL,
  tsv             tsvector GENERATED ALWAYS AS (search_vector(author_name, content)) STORED,
  UNIQUE (conversation_id, position),
  -- With the agent, so that no row hangs on another agent's conversation; a conversation that is given to another agent takes its messages along.
  FOREIGN KEY (agent_id, conversation_id) REFERENCES conversations (agent_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON messages (agent_id, created_at);
CREATE INDEX ON messages (agent_id) WHERE passing;
CREATE INDEX ON messages (author_id) WHERE kind = 'quote';
CREATE INDEX ON messages (event_id);
CREATE INDEX ON messages (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX ON messages (place_id, platform_id) WHERE platform_id IS NOT NULL;
CREATE INDEX messages_quoted ON messages (platform_id COLLATE "C") WHERE kind = 'quote' AND platform_id IS NOT NULL;
CREATE INDEX messages_quotes_by_time ON messages (created_at) WHERE kind = 'quote';  -- what retention looks for
CREATE INDEX messages_words ON messages USING gin (agent_id, tsv) WITH (fastupdate = off) WHERE searchable;
CALL protect('messages', 'shared');
GRANT SELECT, INSERT, UPDATE, DELETE ON messages TO keepsake_bot;

-- What was said while memory was paused goes when the person resumes, and what a turn that was running then needed, when it ends.
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

CREATE TABLE documents (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id   bigint NOT NULL REFERENCES places,
  visibility text NOT NULL CHECK (visibility IN ('direct', 'private', 'public')),
  shareable  boolean NOT NULL DEFAULT false,
  name       text NOT NULL,
  media_type text NOT NULL DEFAULT '',
  sha256     bytea NOT NULL,
  size       bigint NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX ON documents (agent_id);
CALL protect('documents', 'shared');
GRANT SELECT, INSERT, DELETE ON documents TO keepsake_bot;

CREATE TABLE passages (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id    bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id    bigint NOT NULL REFERENCES places,
  visibility  text NOT NULL CHECK (visibility IN ('direct', 'private', 'public')),
  shareable   boolean NOT NULL DEFAULT false,
  document_id bigint REFERENCES documents ON DELETE CASCADE,
  author_id   text NOT NULL DEFAULT '',          -- whose words it repeats, if somebody else's: it goes with them, and after the time of quotes
  author_name text NOT NULL DEFAULT '',
  content     text NOT NULL,
  tags        text[] NOT NULL DEFAULT '{}',
  turn_id     bigint REFERENCES turns ON DELETE SET NULL,
  created_at  timestamptz NOT NULL,
  tsv         tsvector GENERATED ALWAYS AS (search_vector('', content)) STORED
);
CREATE INDEX ON passages (agent_id, created_at);
CREATE INDEX ON passages (author_id) WHERE author_id <> '';
CREATE INDEX ON passages (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX ON passages (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX passages_words ON passages USING gin (agent_id, tsv) WITH (fastupdate = off);
CREATE INDEX passages_tags ON passages USING gin (agent_id, tags);
CALL protect('passages', 'shared');
GRANT SELECT, INSERT, UPDATE, DELETE ON passages TO keepsake_bot;

CREATE TABLE working_context (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id   bigint NOT NULL REFERENCES places,
  visibility text NOT NULL CHECK (visibility IN ('direct', 'private', 'public')),
  shareable  boolean NOT NULL DEFAULT false,
  section    text NOT NULL CHECK (section IN ('persona', 'profile', 'preferences', 'key_facts', 'goals', 'task_notes')),
  author_id  text NOT NULL DEFAULT '',           -- as in passages
  content    text NOT NULL,
  turn_id    bigint REFERENCES turns ON DELETE SET NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX ON working_context (agent_id, id);
CREATE INDEX ON working_context (author_id) WHERE author_id <> '';
CREATE INDEX ON working_context (turn_id) WHERE turn_id IS NOT NULL;
CALL protect('working_context', 'shared');
GRANT SELECT, INSERT, UPDATE, DELETE ON working_context TO keepsake_bot;

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
-- A question that is asked once more counts from then on.
GRANT SELECT, INSERT, UPDATE (messages, turn_id), DELETE ON memory_requests TO keepsake_bot;

-- Where memory came from, and what was done to it -----------------------------------------------------

CREATE TABLE sources (
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  message_id bigint NOT NULL REFERENCES messages ON DELETE CASCADE,
  entry_id   bigint REFERENCES working_context ON DELETE CASCADE,
  passage_id bigint REFERENCES passages ON DELETE CASCADE,
  conversation_id bigint REFERENCES conversations ON DELETE CASCADE,  -- of a summary
  role       text NOT NULL CHECK (role IN ('trigger', 'window')),
  CHECK (num_nonnulls(entry_id, passage_id, conversation_id) = 1)
);
CREATE INDEX ON sources (agent_id);
CREATE INDEX ON sources (message_id);
CREATE INDEX ON sources (entry_id) WHERE entry_id IS NOT NULL;
CREATE INDEX ON sources (passage_id) WHERE passage_id IS NOT NULL;
CREATE INDEX ON sources (conversation_id) WHERE conversation_id IS NOT NULL;
CALL protect('sources', 'agent');
GRANT SELECT, INSERT, DELETE ON sources TO keepsake_bot;

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

CREATE TABLE memory_log (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id   bigint NOT NULL REFERENCES places,
  at         timestamptz NOT NULL,
  actor      text NOT NULL CHECK (actor IN ('agent', 'person', 'admin', 'operator', 'system')),
  action     text NOT NULL,                      -- the function or command, never words of a person
  target     text NOT NULL CHECK (target IN ('working_context', 'passage', 'message', 'summary', 'conversation', 'timer', 'everything')),
  target_id  bigint,
  turn_id    bigint,
  message_id bigint,                             -- what the change came from
  covers     bigint,                             -- of a summary, the last position that it covers
  undoes     bigint                              -- which change this one took back
);
CREATE INDEX ON memory_log (agent_id, id);
CREATE INDEX ON memory_log (target_id) WHERE target IN ('working_context', 'passage');
CREATE INDEX memory_log_summaries ON memory_log (target_id, id) WHERE target IN ('summary', 'conversation');
CALL protect('memory_log', 'place');
GRANT SELECT, INSERT ON memory_log TO keepsake_bot;

CREATE TABLE memory_log_content (
  log_id     bigint PRIMARY KEY REFERENCES memory_log ON DELETE CASCADE,
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  reason     text NOT NULL DEFAULT '',
  before     text,
  after      text,
  row_before jsonb                               -- the whole row before the change, so that it can be undone; null: there was none
);
CREATE INDEX ON memory_log_content (agent_id);
CREATE INDEX memory_log_content_quoting ON memory_log_content ((row_before->>'author_id')) WHERE row_before->>'author_id' <> '';
CALL protect('memory_log_content', 'agent');
GRANT SELECT, INSERT, DELETE ON memory_log_content TO keepsake_bot;

-- Vectors ---------------------------------------------------------------------------------------------

CREATE TABLE embedding_models (
  id   integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  dims integer NOT NULL CHECK (dims BETWEEN 1 AND 4000)   -- the most that a halfvec index holds
);
INSERT INTO embedding_models (id, name, dims) VALUES (1, 'use-multilingual-3', 512);
SELECT setval(pg_get_serial_sequence('embedding_models', 'id'), 1);
GRANT SELECT ON embedding_models TO keepsake_bot;

CREATE TABLE embeddings (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  message_id bigint REFERENCES messages ON DELETE CASCADE,
  passage_id bigint REFERENCES passages ON DELETE CASCADE,
  model_id   integer NOT NULL REFERENCES embedding_models,
  embedding  halfvec NOT NULL,
  CHECK (num_nonnulls(message_id, passage_id) = 1),
  UNIQUE (message_id, model_id),
  UNIQUE (passage_id, model_id)
);
CREATE INDEX ON embeddings (agent_id, model_id);
CREATE INDEX embeddings_hnsw_1 ON embeddings USING hnsw ((embedding::halfvec(512)) halfvec_cosine_ops) WHERE model_id = 1;
CALL protect('embeddings', 'agent');
GRANT SELECT, INSERT, DELETE ON embeddings TO keepsake_bot;

-- Rows that still lack a vector of the current model; filled by trigger, emptied after the commit.
CREATE TABLE unembedded (
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  message_id bigint UNIQUE REFERENCES messages ON DELETE CASCADE,
  passage_id bigint UNIQUE REFERENCES passages ON DELETE CASCADE,
  CHECK (num_nonnulls(message_id, passage_id) = 1)
);
CREATE INDEX ON unembedded (agent_id);
CALL protect('unembedded', 'agent');
GRANT SELECT, INSERT, DELETE ON unembedded TO keepsake_bot;

CREATE FUNCTION note_unembedded_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO unembedded (agent_id, message_id) VALUES (new.agent_id, new.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER note_unembedded AFTER INSERT OR UPDATE OF content ON messages
  FOR EACH ROW WHEN (new.searchable) EXECUTE FUNCTION note_unembedded_message();

CREATE FUNCTION note_unembedded_passage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO unembedded (agent_id, passage_id) VALUES (new.agent_id, new.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER note_unembedded AFTER INSERT OR UPDATE OF content ON passages
  FOR EACH ROW EXECUTE FUNCTION note_unembedded_passage();
