-- The newest entry of the working context that the prompt's beginning shows in a conversation. It moves on when the beginning changes anyway,
-- at a flush; what was added since is told with the status, so that a stored fact does not have the whole prompt read again. NULL: the
-- beginning is yet to be written.
ALTER TABLE conversations ADD COLUMN entries_shown bigint;
