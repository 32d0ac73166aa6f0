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

ALTER TABLE messages DROP CONSTRAINT messages_asks_check;
ALTER TABLE messages ADD CONSTRAINT messages_asks_check CHECK (asks IN ('leave', 'zone', 'memory', 'timer'));

-- The outbox -----------------------------------------------------------------------------------------

-- `buttons`: what stands under the message (a button of adapters/base.py each). `notify`: where others read it too, it notifies its person.
ALTER TABLE outbox ADD COLUMN buttons jsonb, ADD COLUMN notify boolean NOT NULL DEFAULT false;

-- Leave ----------------------------------------------------------------------------------------------

-- `promised`: the quiet hours and the cap that held when leave was given (bot/speaking/decision.py), empty until its timers are planned.
ALTER TABLE speaking ADD COLUMN promised text NOT NULL DEFAULT '';

-- A new yes is one to the rules that hold then.
CREATE FUNCTION promise_anew() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.promised := ''; RETURN NEW; END $$;
CREATE TRIGGER promise_anew BEFORE UPDATE OF openers ON speaking FOR EACH ROW
  WHEN (NEW.openers = 'yes' AND OLD.openers IS DISTINCT FROM 'yes') EXECUTE FUNCTION promise_anew();
