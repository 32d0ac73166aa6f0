-- Speaking first: timers, leave to speak, what was said first, and welcomes.

CREATE TABLE timers (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id   bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id   bigint NOT NULL REFERENCES places,
  visibility text NOT NULL CHECK (visibility IN ('direct', 'private', 'public')),
  shareable  boolean NOT NULL DEFAULT false,
  kind       text NOT NULL CHECK (kind IN ('reminder', 'follow_up', 'opener', 'schedule')),  -- follow_up: the agent's own
  name       text NOT NULL DEFAULT '',           -- of a schedule
  purpose    text NOT NULL,
  zone       text NOT NULL,                      -- IANA name; wall_time is read in it
  floating   boolean NOT NULL DEFAULT true,      -- keeps its wall time when the person's zone changes, or its instant ("in 20 minutes")
  wall_time  timestamp NOT NULL,
  every      text CHECK (every IN ('day', 'week', 'month')),
  due_at     timestamptz,                        -- null once finished or cancelled
  turn_id    bigint REFERENCES turns ON DELETE SET NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX timers_due ON timers (due_at) WHERE due_at IS NOT NULL;
CREATE UNIQUE INDEX timers_planned ON timers (agent_id, kind, name) WHERE due_at IS NOT NULL AND kind IN ('opener', 'schedule');
CREATE INDEX ON timers (agent_id);
CREATE INDEX ON timers (turn_id) WHERE turn_id IS NOT NULL;
CALL protect('timers', 'shared');
GRANT SELECT, INSERT, UPDATE, DELETE ON timers TO keepsake_bot;

-- Leave, at most one row an agent; no row is every default, and the default is silence. Only the person's own words or command set
-- `openers` to yes or no; nothing of the operator does.
CREATE TABLE speaking (
  agent_id    bigint PRIMARY KEY REFERENCES agents ON DELETE CASCADE,
  openers     text NOT NULL DEFAULT 'unasked' CHECK (openers IN ('unasked', 'asked', 'yes', 'no')),
  decided_at  timestamptz,                       -- when the person last said yes or no
  quiet_from  time,                              -- local; both null: the operator's quiet hours
  quiet_to    time,                              -- as quiet_from: no quiet hours, by the person's wish
  daily_cap   smallint CHECK (daily_cap BETWEEN 0 AND 20),  -- null: the operator's
  crisis_at   timestamptz,                       -- when the person last spoke of harming themselves
  care_at     timestamptz,                       -- when the emergency lines were last given
  quiet_until timestamptz,                       -- do-not-disturb of the platform, as last asked
  zone_guess  text,                              -- a zone inferred from the person's words, until they confirm it ...
  guess_turn  bigint REFERENCES turns ON DELETE SET NULL,   -- ... in a later turn than this
  planned     text NOT NULL DEFAULT ''           -- fingerprint of the plan (openers, schedules) that the timers were made by
);
CREATE INDEX speaking_planned ON speaking (planned, agent_id) WHERE openers = 'yes';
CALL protect('speaking', 'agent');
GRANT SELECT, INSERT, UPDATE ON speaking TO keepsake_bot;

-- Leave given again, or a first direct message: plan anew.
CREATE FUNCTION note_leave() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  new.planned := '';
  RETURN new;
END $$;
CREATE TRIGGER note_leave BEFORE UPDATE OF openers ON speaking
  FOR EACH ROW WHEN (new.openers = 'yes' AND old.openers <> 'yes') EXECUTE FUNCTION note_leave();

CREATE FUNCTION note_direct() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  UPDATE speaking SET planned = '' WHERE agent_id = new.owner_id;
  RETURN NULL;
END $$;
CREATE TRIGGER note_direct AFTER INSERT OR UPDATE OF owner_id ON places
  FOR EACH ROW WHEN (new.owner_id IS NOT NULL) EXECUTE FUNCTION note_direct();

-- Every turn in which the model was asked whether to speak first, for the cap, the gap, the growing silence and the costs.
-- The words are in recall storage, under the turn.
CREATE TABLE openers (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  place_id bigint NOT NULL REFERENCES places,
  turn_id  bigint UNIQUE REFERENCES turns ON DELETE SET NULL,
  kind     text NOT NULL CHECK (kind IN ('opener', 'follow_up', 'schedule', 'login')),
  said     boolean NOT NULL,
  at       timestamptz NOT NULL
);
CREATE INDEX ON openers (agent_id, at DESC);
CREATE INDEX ON openers (at);
CALL protect('openers', 'agent');
GRANT SELECT, INSERT, UPDATE ON openers TO keepsake_bot;

-- Keyed hashes of the join events that were welcomed lately, so that one that comes twice is welcomed once. They name nobody.
CREATE TABLE welcomes (
  hash  bytea PRIMARY KEY,
  until timestamptz NOT NULL
);
