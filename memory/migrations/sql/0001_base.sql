-- The tables, row-level security and the few functions that look across agents.
-- Run by the owner role; the extensions (vector, pg_trgm, btree_gin) stand in schema public before it.

-- Session settings: who is asking and what may be used here -------------------------------------------

CREATE FUNCTION current_agent() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT nullif(current_setting('keepsake.agent', true), '')::bigint $$;

CREATE FUNCTION whole_places() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT coalesce(nullif(current_setting('keepsake.whole', true), ''), '{}')::bigint[] $$;

CREATE FUNCTION public_places() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT coalesce(nullif(current_setting('keepsake.public', true), ''), '{}')::bigint[] $$;

CREATE FUNCTION shared_places() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT coalesce(nullif(current_setting('keepsake.shared', true), ''), '{}')::bigint[] $$;

-- Where a row may be written: the current place alone, or every place in the person's own view.
CREATE FUNCTION writable_places() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT coalesce(nullif(current_setting('keepsake.writable', true), ''), '{}')::bigint[] $$;

-- Rule 5 of the design as one expression. A row written while its place was private stays private,
-- and a place that is private now hides its public rows: the stricter of then and now.
CREATE FUNCTION usable(place bigint, visibility text, shareable boolean) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT place = ANY ((SELECT whole_places())::bigint[])
      OR (visibility = 'public' AND place = ANY ((SELECT public_places())::bigint[]))
      OR (shareable AND place = ANY ((SELECT shared_places())::bigint[]))
$$;

-- People and places -----------------------------------------------------------------------------------

CREATE TABLE agents (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  created_at     timestamptz NOT NULL DEFAULT now(),
  next_seq       bigint NOT NULL DEFAULT 1,
  epoch          bigint NOT NULL DEFAULT 0,
  version        bigint NOT NULL DEFAULT 0,      -- raised by every committed change to what its prompt shows
  wake           boolean NOT NULL DEFAULT false, -- true exactly while one wake-up job is waiting or running
  paused         boolean NOT NULL DEFAULT false,
  cross_accounts boolean NOT NULL DEFAULT false, -- the separate yes of rule 5 for linked accounts
  timezone       text,
  locale         text
);

CREATE TABLE identities (
  platform     text NOT NULL,
  realm        text NOT NULL,                    -- where user ids are unique: '' on Discord, the team on Slack
  user_id      text NOT NULL,
  agent_id     bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  merged_into  bigint REFERENCES agents ON DELETE CASCADE,
  display_name text NOT NULL DEFAULT '',
  unreachable_since timestamptz,
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (platform, realm, user_id)
);
CREATE INDEX ON identities (agent_id);

CREATE TABLE places (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  platform       text NOT NULL,
  realm          text NOT NULL,
  workspace      text NOT NULL,                  -- guild or team; '' for a direct message outside any
  external_id    text NOT NULL,
  kind           text NOT NULL CHECK (kind IN ('direct', 'private', 'public')),
  name           text NOT NULL DEFAULT '',
  parent_id      bigint REFERENCES places,
  owner_id       bigint REFERENCES agents ON DELETE SET NULL,  -- whose direct message this is
  policy_version bigint NOT NULL DEFAULT 0,
  UNIQUE (platform, realm, external_id)
);
CREATE INDEX ON places (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE conversations (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id        bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id        bigint NOT NULL REFERENCES places,
  summary         text NOT NULL DEFAULT '',
  summary_visibility text NOT NULL DEFAULT 'public' CHECK (summary_visibility IN ('direct', 'private', 'public')),
  summary_from    bigint,                        -- first and last position that the summary covers
  summary_to      bigint,
  summary_tail    text NOT NULL DEFAULT '',      -- what was truncated instead of summarised, from this position on; to be made again
  pending_from    bigint,
  fifo_start      bigint NOT NULL DEFAULT 1,     -- position at which the FIFO queue begins
  next_position   bigint NOT NULL DEFAULT 1,
  warned          boolean NOT NULL DEFAULT false,-- memory pressure was announced since the last flush
  UNIQUE (agent_id, place_id),
  UNIQUE (agent_id, id)
);

-- Inbox, turns, outbox --------------------------------------------------------------------------------

CREATE TABLE turns (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id        bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  conversation_id bigint NOT NULL REFERENCES conversations ON DELETE CASCADE,
  place_id        bigint NOT NULL REFERENCES places,
  epoch           bigint NOT NULL,
  origin          text NOT NULL CHECK (origin IN ('person', 'timed', 'admin')),
  state           text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'failed', 'cancelled')),
  cancel_requested boolean NOT NULL DEFAULT false,
  step            integer NOT NULL DEFAULT 0,
  passes          integer NOT NULL DEFAULT 0,
  memory_calls    integer NOT NULL DEFAULT 0,
  memory_writes   integer NOT NULL DEFAULT 0,
  tokens          integer NOT NULL DEFAULT 0,
  replied         boolean NOT NULL DEFAULT false,
  nudged          boolean NOT NULL DEFAULT false,-- asked once for a reply after yielding without one
  started_at      timestamptz NOT NULL,
  finished_at     timestamptz
);
CREATE UNIQUE INDEX one_running_turn ON turns (agent_id) WHERE state = 'running';
CREATE INDEX ON turns (agent_id, id);

CREATE TABLE events (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  seq        bigint NOT NULL,
  place_id   bigint NOT NULL REFERENCES places,
  visibility text NOT NULL CHECK (visibility IN ('direct', 'private', 'public')),  -- of the place when it was said
  kind       text NOT NULL,
  origin     text NOT NULL CHECK (origin IN ('person', 'timed', 'admin')),
  source     text NOT NULL,                      -- the platform or machine that the key is unique in
  idem       text NOT NULL,
  payload    jsonb NOT NULL,
  burst_ms   integer NOT NULL DEFAULT 0,         -- how long to wait for more of the same burst
  status     smallint NOT NULL DEFAULT 0,        -- 0 waiting, 1 done, 2 dead letter, 3 cancelled
  attempts   integer NOT NULL DEFAULT 0,
  last_error text NOT NULL DEFAULT '',           -- error class only, never text of a message
  turn_id    bigint REFERENCES turns ON DELETE SET NULL,
  created_at timestamptz NOT NULL,
  done_at    timestamptz,
  UNIQUE (agent_id, seq),
  UNIQUE (source, idem)
);
CREATE INDEX events_waiting ON events (agent_id, seq) WHERE status = 0;
CREATE INDEX events_dead ON events (id) WHERE status = 2;
CREATE INDEX events_by_message ON events (place_id, (payload->>'message_id')) WHERE status IN (0, 2);
CREATE INDEX ON events (turn_id);

CREATE TABLE outbox (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id     bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id     bigint NOT NULL REFERENCES places,
  platform     text NOT NULL,
  channel      text NOT NULL,                    -- the place's id on its platform; order holds within it
  turn_id      bigint NOT NULL REFERENCES turns ON DELETE CASCADE,
  step         integer NOT NULL,
  part         integer NOT NULL,
  body         text NOT NULL,
  reply_to     text,
  state        text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sending', 'sent', 'failed', 'withdrawn')),
  attempts     integer NOT NULL DEFAULT 0,
  not_before   timestamptz,
  sending_since timestamptz,
  platform_id  text,
  last_error   text NOT NULL DEFAULT '',
  created_at   timestamptz NOT NULL,
  UNIQUE (turn_id, step, part)
);
CREATE INDEX outbox_unsent ON outbox (platform, channel, id) WHERE state IN ('waiting', 'sending');
CREATE INDEX ON outbox (agent_id);

-- Memory ----------------------------------------------------------------------------------------------

CREATE TABLE messages (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id        bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  conversation_id bigint NOT NULL,
  place_id        bigint NOT NULL REFERENCES places,
  visibility      text NOT NULL CHECK (visibility IN ('direct', 'private', 'public')),
  shareable       boolean NOT NULL DEFAULT false,
  position        bigint NOT NULL,
  role            text NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
  kind            text NOT NULL CHECK (kind IN ('message', 'quote', 'event', 'monologue', 'call', 'result', 'alert')),
  author_id       text NOT NULL DEFAULT '',      -- platform:realm:user, so that erasing a person finds their quotes
  author_name     text NOT NULL DEFAULT '',
  content         text NOT NULL,
  calls           jsonb,                         -- the calls of an assistant message, as sent to the model
  call_id         text,                          -- what a result answers
  platform_id     text,                          -- the message's id on its platform
  event_id        bigint REFERENCES events ON DELETE SET NULL,
  turn_id         bigint REFERENCES turns ON DELETE SET NULL,
  searchable      boolean NOT NULL,
  created_at      timestamptz NOT NULL,
  tsv             tsvector GENERATED ALWAYS AS (search_vector(author_name, content)) STORED,
  UNIQUE (conversation_id, position),
  -- With the agent, so that no row hangs on another agent's conversation.
  FOREIGN KEY (agent_id, conversation_id) REFERENCES conversations (agent_id, id) ON DELETE CASCADE
);
CREATE INDEX ON messages (agent_id, created_at);
CREATE INDEX ON messages (author_id) WHERE kind = 'quote';
CREATE INDEX ON messages (event_id);
CREATE INDEX ON messages (place_id, platform_id) WHERE platform_id IS NOT NULL;
CREATE INDEX messages_words ON messages USING gin (agent_id, tsv) WITH (fastupdate = off) WHERE searchable;

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

CREATE TABLE passages (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id    bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id    bigint NOT NULL REFERENCES places,
  visibility  text NOT NULL CHECK (visibility IN ('direct', 'private', 'public')),
  shareable   boolean NOT NULL DEFAULT false,
  document_id bigint REFERENCES documents ON DELETE CASCADE,
  author_name text NOT NULL DEFAULT '',
  content     text NOT NULL,
  tags        text[] NOT NULL DEFAULT '{}',
  turn_id     bigint REFERENCES turns ON DELETE SET NULL,
  created_at  timestamptz NOT NULL,
  tsv         tsvector GENERATED ALWAYS AS (search_vector('', content)) STORED
);
CREATE INDEX ON passages (agent_id, created_at);
CREATE INDEX passages_words ON passages USING gin (agent_id, tsv) WITH (fastupdate = off);
CREATE INDEX passages_tags ON passages USING gin (agent_id, tags);

CREATE TABLE working_context (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id   bigint NOT NULL REFERENCES places,
  visibility text NOT NULL CHECK (visibility IN ('direct', 'private', 'public')),
  shareable  boolean NOT NULL DEFAULT false,
  section    text NOT NULL CHECK (section IN ('persona', 'profile', 'preferences', 'key_facts', 'goals', 'task_notes')),
  content    text NOT NULL,
  turn_id    bigint REFERENCES turns ON DELETE SET NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX ON working_context (agent_id, id);

CREATE TABLE embedding_models (
  id   integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  dims integer NOT NULL CHECK (dims BETWEEN 1 AND 4000)   -- the most that a halfvec index holds
);
INSERT INTO embedding_models (id, name, dims) VALUES (1, 'use-multilingual-3', 512);
SELECT setval(pg_get_serial_sequence('embedding_models', 'id'), 1);

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

-- Rows that still lack a vector of the current model; filled by trigger, emptied after the commit.
CREATE TABLE unembedded (
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  message_id bigint UNIQUE REFERENCES messages ON DELETE CASCADE,
  passage_id bigint UNIQUE REFERENCES passages ON DELETE CASCADE,
  CHECK (num_nonnulls(message_id, passage_id) = 1)
);
CREATE INDEX ON unembedded (agent_id);

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

CREATE TABLE memory_log (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id  bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id  bigint NOT NULL REFERENCES places,
  at        timestamptz NOT NULL,
  actor     text NOT NULL CHECK (actor IN ('agent', 'person', 'admin', 'operator', 'system')),
  action    text NOT NULL,                       -- the function or command, never words of a person
  target    text NOT NULL CHECK (target IN ('working_context', 'passage', 'message', 'summary', 'conversation', 'timer', 'everything')),
  target_id bigint,
  turn_id   bigint
);
CREATE INDEX ON memory_log (agent_id, id);

CREATE TABLE memory_log_content (
  log_id   bigint PRIMARY KEY REFERENCES memory_log ON DELETE CASCADE,
  agent_id bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  reason   text NOT NULL DEFAULT '',
  before   text,
  after    text
);
CREATE INDEX ON memory_log_content (agent_id);

CREATE TABLE timers (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id   bigint NOT NULL REFERENCES places,
  visibility text NOT NULL CHECK (visibility IN ('direct', 'private', 'public')),
  shareable  boolean NOT NULL DEFAULT false,
  kind       text NOT NULL CHECK (kind IN ('reminder', 'opener', 'schedule')),
  purpose    text NOT NULL,
  zone       text NOT NULL,                      -- IANA name; wall_time is read in it
  wall_time  timestamp NOT NULL,
  every      text CHECK (every IN ('day', 'week', 'month')),
  due_at     timestamptz,                        -- null once finished or cancelled
  turn_id    bigint REFERENCES turns ON DELETE SET NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX timers_due ON timers (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX ON timers (agent_id);

CREATE TABLE usage (
  id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id          bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  turn_id           bigint REFERENCES turns ON DELETE SET NULL,
  purpose           text NOT NULL,               -- chat, summary, filter
  model             text NOT NULL,
  prompt_tokens     integer NOT NULL,
  cached_tokens     integer NOT NULL,
  completion_tokens integer NOT NULL,
  at                timestamptz NOT NULL
);
CREATE INDEX ON usage (agent_id, at);

-- What is spent of a day's budget, estimated before a model call and settled after it; micros are millionths of the price table's currency.
CREATE TABLE spending (
  agent_id bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  day      date NOT NULL,
  tokens   bigint NOT NULL DEFAULT 0,
  micros   bigint NOT NULL DEFAULT 0,
  told     boolean NOT NULL DEFAULT false,       -- the person heard that the day's budget is spent
  PRIMARY KEY (agent_id, day)
);
-- The same for the whole bot; outlives an erased person, and names none.
CREATE TABLE spending_total (
  day    date PRIMARY KEY,
  tokens bigint NOT NULL DEFAULT 0,
  micros bigint NOT NULL DEFAULT 0
);

-- Keyed hashes of the event keys of an erased person, for a week, so that a late redelivery brings nobody back.
CREATE TABLE erased_events (
  hash  bytea PRIMARY KEY,
  until timestamptz NOT NULL
);
-- What proves an erasure, without content.
CREATE TABLE erasures (
  id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at     timestamptz NOT NULL,
  actor  text NOT NULL CHECK (actor IN ('person', 'admin', 'operator', 'system')),
  counts jsonb NOT NULL
);

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

-- Row-level security ----------------------------------------------------------------------------------

-- Binds a table of personal data to the agent, and to its places by `scope`: agent (every row of the agent), place (rows of places that
-- are wholly usable) or shared (rule 5, for tables with visibility and shareable). Every later table of personal data goes through it.
CREATE PROCEDURE protect(t text, scope text) LANGUAGE plpgsql AS $$
DECLARE
  by_agent CONSTANT text := 'agent_id = (SELECT current_agent())';
  of_place CONSTANT text := by_agent || ' AND place_id = ANY ((SELECT whole_places())::bigint[])';
  by_rule5 CONSTANT text := by_agent || ' AND (place_id = ANY ((SELECT whole_places())::bigint[])'
    || ' OR (visibility = ''public'' AND place_id = ANY ((SELECT public_places())::bigint[]))'
    || ' OR (shareable AND place_id = ANY ((SELECT shared_places())::bigint[])))';
  rule CONSTANT text := CASE
    WHEN t = 'agents' THEN 'id = (SELECT current_agent())'
    WHEN t = 'places' THEN '(kind = ''public'' AND id = ANY ((SELECT public_places())::bigint[])) OR id = ANY ((SELECT whole_places())::bigint[]) OR id = ANY ((SELECT shared_places())::bigint[])'
    WHEN scope = 'place' THEN of_place
    WHEN scope = 'shared' THEN by_rule5
    ELSE by_agent
  END;
  written CONSTANT text := CASE
    WHEN t IN ('agents', 'places') THEN rule
    WHEN scope IN ('place', 'shared') THEN by_agent || ' AND place_id = ANY ((SELECT writable_places())::bigint[])'
    ELSE by_agent
  END;
BEGIN
  IF scope NOT IN ('agent', 'place', 'shared') THEN RAISE EXCEPTION 'protect: no scope %', scope; END IF;
  EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
  EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  EXECUTE format('CREATE POLICY %I ON %I TO keepsake_bot USING (%s) WITH CHECK (%s)', t || '_own', t, rule, rule);
  -- What may be read is more than what may be made: a turn makes rows of its own place only.
  EXECUTE format('CREATE POLICY %I ON %I AS RESTRICTIVE FOR INSERT TO keepsake_bot WITH CHECK (%s)', t || '_made', t, written);
  EXECUTE format('CREATE POLICY %I ON %I TO keepsake_owner USING (true) WITH CHECK (true)', t || '_owner', t);
END $$;
REVOKE ALL ON PROCEDURE protect(text, text) FROM PUBLIC;

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['agents', 'identities', 'places', 'embeddings', 'unembedded', 'sources', 'memory_log_content', 'usage', 'spending'] LOOP
    CALL protect(t, 'agent');
  END LOOP;
  FOREACH t IN ARRAY ARRAY['conversations', 'turns', 'events', 'outbox', 'memory_log'] LOOP CALL protect(t, 'place'); END LOOP;
  FOREACH t IN ARRAY ARRAY['messages', 'documents', 'passages', 'working_context', 'timers'] LOOP CALL protect(t, 'shared'); END LOOP;
END $$;

GRANT USAGE ON SCHEMA keepsake TO keepsake_bot;
GRANT SELECT ON agents, identities, places, conversations, turns, events, outbox, messages, documents, passages,
  working_context, embeddings, embedding_models, unembedded, sources, memory_log, memory_log_content, timers, usage, spending
  TO keepsake_bot;
GRANT UPDATE (version, paused, timezone, locale) ON agents TO keepsake_bot;
GRANT UPDATE ON conversations, turns, events, outbox, messages, passages, working_context, timers TO keepsake_bot;
GRANT INSERT ON conversations, turns, outbox, messages, documents, passages, working_context, embeddings, unembedded, sources,
  memory_log, memory_log_content, timers, usage TO keepsake_bot;
GRANT DELETE ON messages, documents, passages, working_context, embeddings, unembedded, sources, memory_log_content, timers TO keepsake_bot;
REVOKE ALL ON erased_events, erasures, spending_total FROM PUBLIC;
