-- Inbox, turns, outbox.

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
CREATE INDEX ON turns (conversation_id);
CALL protect('turns', 'place');
GRANT SELECT, INSERT, UPDATE ON turns TO keepsake_bot;

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
CREATE INDEX events_done ON events (done_at) WHERE status <> 0;  -- what retention looks for
CREATE INDEX events_by_time ON events (agent_id, created_at);
CREATE INDEX ON events (turn_id);
-- Whoever looks for words looks where words are, and asks for no status.
CREATE INDEX events_by_message ON events (place_id, (payload->>'message_id')) WHERE payload ? 'text';
CREATE INDEX events_quoting ON events (agent_id) WHERE payload ? 'quotes';
CALL protect('events', 'place');
GRANT SELECT, UPDATE ON events TO keepsake_bot;

-- An event of somebody blocked is taken for one that is in already: nothing is stored, nothing is answered, no timer fires.
CREATE FUNCTION refuse_blocked() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM blocks) AND EXISTS (
      SELECT 1 FROM places p JOIN identities i ON i.platform = p.platform AND i.realm = p.realm
        JOIN blocks b ON b.hash = block_hash(i.platform, i.realm, i.user_id) AND b.workspace IN ('', p.workspace)
      WHERE p.id = new.place_id AND i.agent_id = new.agent_id) THEN
    RETURN NULL;
  END IF;
  RETURN new;
END $$;
CREATE TRIGGER refuse_blocked BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse_blocked();

-- What stays of an event without anything that anybody said: when, in answer to which message, of which timer or document. A list of
-- what stays, so that a payload's later part is not forgotten.
CREATE FUNCTION wordless(p_payload jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(p_payload)
  WHERE key IN ('addressed', 'at', 'author_id', 'message_id', 'timer', 'timer_id', 'due_at', 'every', 'late', 'document_id')
$$;

-- An event that is done or cancelled holds no words, in whatever way it ended: what was answered stands in recall storage, and a second copy
-- would have to be erased apart. What waits holds them, and so does a dead letter, for its replay.
CREATE FUNCTION empty_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  new.payload := keepsake.wordless(new.payload);
  RETURN new;
END $$;
CREATE TRIGGER empty_ended BEFORE INSERT OR UPDATE ON events FOR EACH ROW WHEN (new.status IN (1, 3)) EXECUTE FUNCTION empty_ended();

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
  -- 'streaming': begun on its platform while the model writes; its turn takes it over with the final text, or ends without it.
  state        text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sending', 'sent', 'failed', 'withdrawn', 'streaming')),
  streamed     boolean NOT NULL DEFAULT false,
  attempts     integer NOT NULL DEFAULT 0,
  not_before   timestamptz,
  sending_since timestamptz,
  platform_id  text,
  last_error   text NOT NULL DEFAULT '',
  created_at   timestamptz NOT NULL,
  UNIQUE (turn_id, step, part)
);
CREATE INDEX outbox_unsent ON outbox (platform, channel, id) WHERE state IN ('waiting', 'sending', 'streaming');
CREATE INDEX outbox_settled ON outbox (created_at) WHERE state IN ('sent', 'failed', 'withdrawn');
CREATE INDEX ON outbox (agent_id);
CALL protect('outbox', 'place');
GRANT SELECT, INSERT, UPDATE ON outbox TO keepsake_bot;
