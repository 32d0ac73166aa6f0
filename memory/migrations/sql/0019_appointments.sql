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

-- `buttons`: what stands under the message, as [{"label", "line"}]. `mentions`: the user id, on the row's platform, of the one person whom
-- the message notifies where others read it too.
ALTER TABLE outbox ADD COLUMN buttons jsonb, ADD COLUMN mentions text;
