-- What the bot itself asks with a message of its own: a plain yes or no right after it answers this and nothing else.
ALTER TABLE messages ADD COLUMN asks text CHECK (asks IN ('leave', 'zone', 'memory'));
-- A question that is asked once more counts from then on.
GRANT UPDATE (messages, turn_id) ON memory_requests TO keepsake_bot;
