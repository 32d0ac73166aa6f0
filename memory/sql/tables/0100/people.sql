-- People: an agent each, the accounts by which they are known, and who is blocked.

CREATE TABLE agents (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  created_at     timestamptz NOT NULL DEFAULT now(),
  next_seq       bigint NOT NULL DEFAULT 1,
  epoch          bigint NOT NULL DEFAULT 0,
  version        bigint NOT NULL DEFAULT 0,      -- raised by every committed change to what its prompt shows
  wake           boolean NOT NULL DEFAULT false, -- true exactly while one wake-up job is waiting or running
  paused         boolean NOT NULL DEFAULT false,
  held           boolean NOT NULL DEFAULT false, -- an operator's pause, which the person cannot end
  cross_accounts boolean NOT NULL DEFAULT false, -- the separate yes of rule 5 for linked accounts
  noticed_at     timestamptz,                    -- when the notice of the first contact went out
  timezone       text,
  locale         text
);
CALL protect('agents', 'agent');
GRANT SELECT, UPDATE (version, paused, cross_accounts, noticed_at, timezone, locale) ON agents TO keepsake_bot;

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
CREATE INDEX ON identities (merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX identities_unreachable ON identities (agent_id) WHERE unreachable_since IS NOT NULL;
CALL protect('identities', 'agent');
GRANT SELECT ON identities TO keepsake_bot;

-- Agents whose zone changed and whose timers are to be reckoned again. A row of its own instead of a change of the timers, because who
-- changes an agent must not wait for a timer that is being fired, which waits for the agent.
CREATE TABLE rezoned (agent_id bigint PRIMARY KEY REFERENCES agents ON DELETE CASCADE);
CALL protect('rezoned', 'agent');
GRANT SELECT, DELETE ON rezoned TO keepsake_bot;

CREATE FUNCTION note_rezoned() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO rezoned (agent_id) VALUES (new.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER note_rezoned AFTER UPDATE OF timezone ON agents
  FOR EACH ROW WHEN (old.timezone IS DISTINCT FROM new.timezone) EXECUTE FUNCTION note_rezoned();

-- Who is blocked, by a hash of the account, so that it outlives an erasure and names nobody. workspace '': everywhere.
CREATE TABLE blocks (
  hash      bytea NOT NULL,
  workspace text NOT NULL DEFAULT '',
  at        timestamptz NOT NULL,
  PRIMARY KEY (hash, workspace)
);

CREATE FUNCTION block_hash(p_platform text, p_realm text, p_user text) RETURNS bytea LANGUAGE sql IMMUTABLE
AS $$ SELECT sha256(convert_to(p_platform || E'\x1f' || p_realm || E'\x1f' || p_user, 'UTF8')) $$;

-- Codes by which two accounts become one person's, for ten minutes: the account that asked for one, the account that took it, and whether
-- each has agreed, seeing the other. Only a hash of the code is kept.
CREATE TABLE links (
  hash           bytea PRIMARY KEY,
  agent_id       bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  platform       text NOT NULL,
  realm          text NOT NULL,
  user_id        text NOT NULL,
  agreed         boolean NOT NULL DEFAULT false,
  taker_id       bigint REFERENCES agents ON DELETE CASCADE,
  taker_platform text,
  taker_realm    text,
  taker_user     text,
  taker_agreed   boolean NOT NULL DEFAULT false,
  until          timestamptz NOT NULL
);
CREATE INDEX ON links (agent_id);
CREATE INDEX ON links (taker_id) WHERE taker_id IS NOT NULL;
CALL protect('links', 'agent');
GRANT SELECT ON links TO keepsake_bot;

-- What bounds guessing: codes asked for and codes tried, of the last hour.
CREATE TABLE link_tries (
  agent_id bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  kind     text NOT NULL CHECK (kind IN ('offer', 'take')),
  at       timestamptz NOT NULL
);
CREATE INDEX ON link_tries (agent_id, at);
CALL protect('link_tries', 'agent');
GRANT SELECT ON link_tries TO keepsake_bot;
