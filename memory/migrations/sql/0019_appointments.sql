-- Run by the owner role.

-- Timers ---------------------------------------------------------------------------------------------

-- `every`: day, week, month, year, or a rule of RFC 5545 (memory/recurrence.py checks it). A proposal is what the agent would set and the
-- person has not said yes to: it is never due. `message_id`: the message whose words asked for it. `faults`: how often it could not be
-- reckoned or fired since it last did.
ALTER TABLE timers DROP CONSTRAINT timers_every_check;
ALTER TABLE timers DROP CONSTRAINT timers_kind_check;
ALTER TABLE timers ADD CONSTRAINT timers_kind_check CHECK (kind IN ('reminder', 'follow_up', 'opener', 'schedule', 'proposal'));
ALTER TABLE timers ADD CONSTRAINT timers_proposal_check CHECK (kind <> 'proposal' OR due_at IS NULL);
ALTER TABLE timers ADD COLUMN message_id bigint REFERENCES messages ON DELETE SET NULL, ADD COLUMN faults smallint NOT NULL DEFAULT 0;
CREATE INDEX ON timers (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX timers_faulty ON timers (id) WHERE faults > 0;

-- The timers that wait and could not be reckoned or fired when they last were due, in numbers alone.
CREATE FUNCTION faulty_timers() RETURNS TABLE (timer_id bigint, faults smallint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$ SELECT id, faults FROM timers WHERE faults > 0 AND due_at IS NOT NULL ORDER BY id LIMIT 100 $$;

ALTER TABLE messages DROP CONSTRAINT messages_asks_check;
ALTER TABLE messages ADD CONSTRAINT messages_asks_check CHECK (asks IN ('leave', 'zone', 'memory', 'timer'));

-- The outbox -----------------------------------------------------------------------------------------

-- `buttons`: what stands under the message (a button of adapters/base.py each). `notify`: where others read it too, it notifies its person.
ALTER TABLE outbox ADD COLUMN buttons jsonb, ADD COLUMN notify boolean NOT NULL DEFAULT false;

-- The user id of an agent's person on the platform of a place; of several accounts there the one that was seen first.
CREATE FUNCTION person_at(p_agent bigint, p_place bigint) RETURNS text
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT i.user_id FROM identities i JOIN places p ON p.id = p_place AND i.platform = p.platform AND i.realm = p.realm
  WHERE coalesce(i.merged_into, i.agent_id) = p_agent ORDER BY i.unreachable_since NULLS FIRST, i.created_at, i.user_id LIMIT 1
$$;

-- As in 0003, with the buttons.
CREATE OR REPLACE FUNCTION redirect_timed(p_outbox bigint, p_note text, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE o outbox; here places; target places; made bigint;
BEGIN
  SELECT b.* INTO o FROM outbox b JOIN turns t ON t.id = b.turn_id WHERE b.id = p_outbox AND t.origin = 'timed';
  SELECT * INTO here FROM places WHERE id = o.place_id;
  IF o.id IS NULL OR here.kind = 'direct' THEN RETURN NULL; END IF;
  SELECT * INTO target FROM places WHERE id = direct_of(o.agent_id, o.place_id);
  IF target.id IS NULL THEN RETURN NULL; END IF;
  INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, created_at, buttons)
    VALUES (o.agent_id, target.id, target.platform, target.external_id, o.turn_id, -1000 - o.step, o.part, p_note || o.body, p_now, o.buttons)
    ON CONFLICT DO NOTHING RETURNING id INTO made;
  UPDATE timers SET place_id = target.id WHERE agent_id = o.agent_id AND place_id = o.place_id AND due_at IS NOT NULL;
  PERFORM pg_notify('keepsake_outbox', target.platform);
  RETURN made;
END $$;

-- Leave ----------------------------------------------------------------------------------------------

-- `promised`: the quiet hours and the cap that held when leave was given (bot/speaking/decision.py), empty until its timers are planned.
ALTER TABLE speaking ADD COLUMN promised text NOT NULL DEFAULT '';

-- A new yes is one to the rules that hold then.
CREATE FUNCTION promise_anew() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.promised := ''; RETURN NEW; END $$;
CREATE TRIGGER promise_anew BEFORE UPDATE OF openers ON speaking FOR EACH ROW
  WHEN (NEW.openers = 'yes' AND OLD.openers IS DISTINCT FROM 'yes') EXECUTE FUNCTION promise_anew();

-- As in 0003, with what was promised.
DROP FUNCTION standing(bigint, bigint, bigint);
CREATE FUNCTION standing(p_agent bigint, p_place bigint, p_turn bigint) RETURNS TABLE (
  openers text, promised text, zone text, quiet_from time, quiet_to time, daily_cap smallint, paused boolean, blocked boolean, reachable boolean,
  direct boolean, busy boolean, last_active timestamptz, crisis_at timestamptz, quiet_until timestamptz, spoken timestamptz[], wrote timestamptz[])
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT coalesce(s.openers, 'unasked'), coalesce(s.promised, ''), coalesce(a.timezone, ''), s.quiet_from, s.quiet_to, s.daily_cap, a.paused,
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
