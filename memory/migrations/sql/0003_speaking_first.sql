-- Leave to speak first, and what was said first.

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

-- Timers: the agent's own follow-ups beside what the person asked for, schedules by name, and whether a timer keeps its wall time
-- when the person's zone changes (`floating`) or its instant ("in 20 minutes").
ALTER TABLE timers DROP CONSTRAINT timers_kind_check;
ALTER TABLE timers ADD CONSTRAINT timers_kind_check CHECK (kind IN ('reminder', 'follow_up', 'opener', 'schedule'));
ALTER TABLE timers ADD COLUMN name text NOT NULL DEFAULT '', ADD COLUMN floating boolean NOT NULL DEFAULT true;
UPDATE timers SET due_at = NULL WHERE kind IN ('opener', 'schedule');  -- planned anew, once each
CREATE UNIQUE INDEX timers_planned ON timers (agent_id, kind, name) WHERE due_at IS NOT NULL AND kind IN ('opener', 'schedule');

-- Agents whose zone changed and whose timers are to be reckoned anew. A row of its own instead of a change of the timers, because who
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

-- What must look across agents or places; ids, times and states only --------------------------------------------------

-- The due timers, locked until the transaction ends; the caller makes events of them in the same transaction. Those of an agent whose
-- zone has just changed wait for their new time.
CREATE OR REPLACE FUNCTION due_timers(p_now timestamptz, p_limit integer)
RETURNS TABLE (timer_id bigint, agent_id bigint, place_id bigint, due_at timestamptz)
-- In the order of the index, whatever the planner believes of how many are due: a herd must not be sorted anew for each hundred of it.
-- The agent is held, too, as an erasure takes the agent first and its timers after: neither waits for the other halfway.
LANGUAGE sql SECURITY DEFINER SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  SELECT t.id, t.agent_id, t.place_id, t.due_at FROM timers t JOIN agents a ON a.id = t.agent_id
  WHERE t.due_at <= p_now AND t.agent_id <> ALL (ARRAY(SELECT r.agent_id FROM rezoned r))
  ORDER BY t.due_at LIMIT p_limit FOR UPDATE OF t SKIP LOCKED FOR KEY SHARE OF a SKIP LOCKED
$$;

CREATE FUNCTION rezoned_agents(p_limit integer) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER AS $$ SELECT agent_id FROM rezoned ORDER BY agent_id LIMIT p_limit FOR UPDATE SKIP LOCKED $$;

-- Where a person reads what is said to them alone: the direct message they last used, of the platform and realm of `p_like` if given.
CREATE FUNCTION direct_of(p_agent bigint, p_like bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT p.id FROM conversations c JOIN places p ON p.id = c.place_id
  WHERE c.agent_id = p_agent AND p.kind = 'direct' AND p.owner_id = p_agent
    AND (p_like IS NULL OR (p.platform, p.realm) = (SELECT l.platform, l.realm FROM places l WHERE l.id = p_like))
  ORDER BY (SELECT max(t.id) FROM turns t WHERE t.conversation_id = c.id AND t.origin = 'person') DESC NULLS LAST, c.id LIMIT 1
$$;

-- People with leave whose timers were not made by this plan, each with their direct message (null: none yet), locked. Two ranges of one
-- index instead of an inequality, so that a million who are planned cost nothing.
CREATE FUNCTION unplanned(p_plan text, p_limit integer) RETURNS TABLE (agent_id bigint, place_id bigint)
LANGUAGE sql SECURITY DEFINER SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  WITH found AS (
    SELECT * FROM (SELECT s.agent_id FROM speaking s JOIN agents a ON a.id = s.agent_id WHERE s.openers = 'yes' AND s.planned < p_plan
      ORDER BY s.planned, s.agent_id LIMIT p_limit FOR UPDATE OF s SKIP LOCKED FOR KEY SHARE OF a SKIP LOCKED) earlier
    UNION ALL
    SELECT * FROM (SELECT s.agent_id FROM speaking s JOIN agents a ON a.id = s.agent_id WHERE s.openers = 'yes' AND s.planned > p_plan
      ORDER BY s.planned, s.agent_id LIMIT p_limit FOR UPDATE OF s SKIP LOCKED FOR KEY SHARE OF a SKIP LOCKED) later)
  SELECT f.agent_id, direct_of(f.agent_id, NULL) FROM found f LIMIT p_limit
$$;

CREATE INDEX ON identities (merged_into) WHERE merged_into IS NOT NULL;

-- How things stand with a person, for the decision whether to speak first at a place now. `p_turn` is the asking turn, which is no reason
-- to be silent. `wrote` are the times of their latest messages, from which a natural hour is drawn.
CREATE FUNCTION standing(p_agent bigint, p_place bigint, p_turn bigint) RETURNS TABLE (
  openers text, zone text, quiet_from time, quiet_to time, daily_cap smallint, paused boolean, blocked boolean, reachable boolean,
  direct boolean, busy boolean, last_active timestamptz, crisis_at timestamptz, quiet_until timestamptz, spoken timestamptz[], wrote timestamptz[])
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT coalesce(s.openers, 'unasked'), coalesce(a.timezone, ''), s.quiet_from, s.quiet_to, s.daily_cap, a.paused,
    EXISTS (SELECT 1 FROM identities i WHERE (i.merged_into = a.id OR (i.agent_id = a.id AND i.merged_into IS NULL)) AND i.platform = p.platform AND i.realm = p.realm
            AND blocked(i.platform, i.realm, i.user_id, p.workspace)),
    EXISTS (SELECT 1 FROM identities i WHERE (i.merged_into = a.id OR (i.agent_id = a.id AND i.merged_into IS NULL)) AND i.platform = p.platform AND i.realm = p.realm
            AND i.unreachable_since IS NULL),
    p.kind = 'direct' AND p.owner_id IS NOT DISTINCT FROM a.id,
    EXISTS (SELECT 1 FROM turns t WHERE t.agent_id = a.id AND t.state = 'running' AND t.id IS DISTINCT FROM p_turn)
      OR EXISTS (SELECT 1 FROM events e WHERE e.agent_id = a.id AND e.status = 0 AND e.origin = 'person'),
    -- events may be gone by their retention, messages by another
    greatest(w.times[1], (SELECT m.created_at FROM messages m WHERE m.agent_id = a.id AND m.role = 'user' AND m.kind = 'message' ORDER BY m.created_at DESC LIMIT 1)),
    s.crisis_at, s.quiet_until,
    ARRAY(SELECT o.at FROM openers o WHERE o.agent_id = a.id AND o.said ORDER BY o.at DESC LIMIT 25),
    w.times
  FROM agents a JOIN places p ON p.id = p_place LEFT JOIN speaking s ON s.agent_id = a.id,
    LATERAL (SELECT ARRAY(SELECT e.created_at FROM events e WHERE e.agent_id = a.id AND e.origin = 'person' ORDER BY e.seq DESC LIMIT 40) AS times) w
  WHERE a.id = p_agent
$$;

-- A place by its platform's ids, without making one.
CREATE FUNCTION place_known(p_platform text, p_realm text, p_external text) RETURNS bigint
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT id FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external
$$;

-- What the timed turns of a time cost, in sums: how often the model was asked, how often it spoke, what arrived, with how many calls.
CREATE FUNCTION opener_costs(p_since timestamptz)
RETURNS TABLE (considered bigint, said bigint, delivered bigint, calls bigint, tokens bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH o AS (SELECT * FROM openers WHERE at >= p_since)
  SELECT count(*), count(*) FILTER (WHERE o.said),
    count(*) FILTER (WHERE o.said AND EXISTS (SELECT 1 FROM outbox b WHERE b.turn_id = o.turn_id AND b.state = 'sent')),
    (SELECT count(*) FROM usage u JOIN o ON o.turn_id = u.turn_id),
    (SELECT coalesce(sum(u.prompt_tokens + u.completion_tokens), 0) FROM usage u JOIN o ON o.turn_id = u.turn_id)
  FROM o
$$;

-- A timed message whose channel is gone: its waiting part goes to the person's own direct message with the same account, with `p_note`
-- before it, and so do the timers that are still set there. Null: there is none, or it was no timed turn elsewhere; then it has failed.
CREATE FUNCTION redirect_timed(p_outbox bigint, p_note text, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE o outbox; here places; target places; made bigint;
BEGIN
  SELECT b.* INTO o FROM outbox b JOIN turns t ON t.id = b.turn_id WHERE b.id = p_outbox AND t.origin = 'timed';
  SELECT * INTO here FROM places WHERE id = o.place_id;
  IF o.id IS NULL OR here.kind = 'direct' THEN RETURN NULL; END IF;
  SELECT * INTO target FROM places WHERE id = direct_of(o.agent_id, o.place_id);
  IF target.id IS NULL THEN RETURN NULL; END IF;
  INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, created_at)
    VALUES (o.agent_id, target.id, target.platform, target.external_id, o.turn_id, -1000 - o.step, o.part, p_note || o.body, p_now)
    ON CONFLICT DO NOTHING RETURNING id INTO made;
  UPDATE timers SET place_id = target.id WHERE agent_id = o.agent_id AND place_id = o.place_id AND due_at IS NOT NULL;
  PERFORM pg_notify('keepsake_outbox', target.platform);
  RETURN made;
END $$;

-- Welcomes -------------------------------------------------------------------------------------------

-- Keyed hashes of the join events that were welcomed lately, so that one that comes twice is welcomed once. They name nobody.
CREATE TABLE welcomes (
  hash  bytea PRIMARY KEY,
  until timestamptz NOT NULL
);
REVOKE ALL ON welcomes FROM PUBLIC;

-- True for whoever may welcome: once per hash. Drops what is over.
CREATE FUNCTION claim_welcome(p_hash bytea, p_until timestamptz, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  DELETE FROM welcomes WHERE until <= p_now;
  INSERT INTO welcomes (hash, until) VALUES (p_hash, p_until) ON CONFLICT DO NOTHING;
  RETURN FOUND;
END $$;

-- The welcome did not go out and may be tried when the event comes again.
CREATE FUNCTION release_welcome(p_hash bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER AS $$ DELETE FROM welcomes WHERE hash = p_hash $$;
