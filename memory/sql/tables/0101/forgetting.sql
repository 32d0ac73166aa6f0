-- Where every text came from ----------------------------------------------------------------------------

-- What a turn had before its eyes when it began, in its own row: positions of its conversation (the queue, and what the summary covers) and
-- entries of the working context. What its searches brought is in `fetched`. Null: not known, an import or an older turn; then anything.
ALTER TABLE turns ADD COLUMN in_view int8multirange, ADD COLUMN entries_in_view bigint[] NOT NULL DEFAULT '{}';
-- A window edge for every message of the queue is what those columns replace.
ALTER TABLE sources DROP CONSTRAINT sources_role_check;
ALTER TABLE sources ADD CONSTRAINT sources_role_check CHECK (role IN ('trigger', 'quote', 'window'));
-- To whom (platform:realm:user) a reply of the bot was said that somebody else's message brought along as a quote.
ALTER TABLE messages ADD COLUMN said_to text NOT NULL DEFAULT '';
CREATE INDEX ON messages (said_to) WHERE said_to <> '';
CREATE INDEX outbox_said ON outbox (platform, channel, platform_id) WHERE platform_id IS NOT NULL;

-- Messages that were kept once and are gone, as their platform still names them.
CREATE INDEX events_ended ON events (place_id, (payload->>'message_id')) WHERE NOT payload ? 'text';

-- The walk ----------------------------------------------------------------------------------------------

-- Pausing -----------------------------------------------------------------------------------------------

-- A reply of which nothing is kept any more is kept no longer than until it is sent.
CREATE FUNCTION empty_sent() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM messages m WHERE m.turn_id = new.turn_id) THEN new.body := ''; END IF;
  RETURN new;
END $$;
CREATE TRIGGER empty_sent BEFORE UPDATE OF state ON outbox FOR EACH ROW WHEN (new.state = 'sent' AND new.body <> '') EXECUTE FUNCTION empty_sent();

-- Retention ---------------------------------------------------------------------------------------------

-- The proof ---------------------------------------------------------------------------------------------
