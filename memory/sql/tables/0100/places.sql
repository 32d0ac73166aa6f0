-- Where people talk to the bot.

CREATE TABLE places (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  platform       text NOT NULL,
  realm          text NOT NULL,
  workspace      text NOT NULL,                  -- guild or team; '' for a direct message outside any
  external_id    text NOT NULL,
  kind           text NOT NULL CHECK (kind IN ('direct', 'private', 'public')),
  name           text NOT NULL DEFAULT '',
  parent_id      bigint REFERENCES places,
  closed         boolean NOT NULL DEFAULT false, -- a thread with members of its own; every other thread is what its channel is
  owner_id       bigint REFERENCES agents ON DELETE SET NULL,  -- whose direct message this is
  policy_version bigint NOT NULL DEFAULT 0,
  UNIQUE (platform, realm, external_id)
);
CREATE INDEX ON places (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX ON places (owner_id) WHERE owner_id IS NOT NULL;
CALL protect('places', 'agent');
GRANT SELECT ON places TO keepsake_bot;

CREATE TABLE conversations (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id        bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id        bigint NOT NULL REFERENCES places,
  lost_at         timestamptz,                   -- the person can no longer read this place
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
CALL protect('conversations', 'place');
GRANT SELECT, INSERT, UPDATE ON conversations TO keepsake_bot;

-- Workspaces that are gone: the app was removed, and has not been put back. A workspace that is only unavailable is never here.
CREATE TABLE workspaces_left (
  platform  text NOT NULL,
  realm     text NOT NULL,
  workspace text NOT NULL,
  left_at   timestamptz NOT NULL,
  PRIMARY KEY (platform, realm, workspace)
);

-- Up to which message everything on a platform was dealt with, whether it was taken in or not. Unlike the newest message taken in, it stays
-- where it is while something before it has not been read. Names nobody.
CREATE TABLE heard (
  platform   text PRIMARY KEY,
  message_id text NOT NULL
);
