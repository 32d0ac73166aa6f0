-- What people decided ------------------------------------------------------------------------------------

-- What people decided about their memory, whichever way they did it, so that it can be applied again to a restored backup: the newest of
-- a kind's sayings about the same thing counts. `about` names a row by table, id and time of making, never its words.
CREATE TABLE decisions (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id bigint REFERENCES agents ON DELETE CASCADE,   -- null: a block, or known by its hash alone
  kind     text NOT NULL CHECK (kind IN ('forgotten', 'kept', 'unshared', 'shared', 'paused', 'held', 'resumed', 'refused', 'agreed',
             'uncrossed', 'crossed', 'unlinked', 'linked', 'blocked', 'unblocked', 'unquoted')),
  about    text NOT NULL DEFAULT '',
  hash     bytea,                                        -- of what came from the file beside the key
  at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON decisions (agent_id);
CREATE INDEX ON decisions (at);
CALL protect('decisions', 'agent');
REVOKE ALL ON decisions FROM PUBLIC;
GRANT SELECT ON decisions TO keepsake_bot;

-- Rows that a person's transaction removes. What upkeep or the erasure of a whole person removes is not noted: the one follows from its age,
-- the other has a record of its own.
CREATE FUNCTION note_forgotten() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF current_agent() IS NULL THEN RETURN NULL; END IF;
  IF TG_TABLE_NAME = 'memory_log_content' THEN
    INSERT INTO decisions (agent_id, kind, about) SELECT g.agent_id, 'forgotten', row_about(TG_TABLE_NAME, g.log_id, l.at)
      FROM gone g JOIN memory_log l ON l.id = g.log_id;
  ELSE
    EXECUTE 'INSERT INTO decisions (agent_id, kind, about) SELECT agent_id, ''forgotten'', row_about($1, id, created_at) FROM gone'
      -- Openers and schedules are planned, not asked for.
      || CASE WHEN TG_TABLE_NAME = 'timers' THEN ' WHERE kind IN (''reminder'', ''follow_up'')' ELSE '' END USING TG_TABLE_NAME::text;
  END IF;
  RETURN NULL;
END $$;

-- A message that was taken back with a no keeps its row, without its words.
CREATE FUNCTION note_taken_back() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO decisions (agent_id, kind, about) VALUES (new.agent_id, 'forgotten', row_about('messages', new.id, new.created_at));
  RETURN NULL;
END $$;
CREATE TRIGGER note_taken_back AFTER UPDATE OF searchable ON messages
  FOR EACH ROW WHEN (old.searchable AND NOT new.searchable AND old.content <> new.content) EXECUTE FUNCTION note_taken_back();

CREATE FUNCTION note_shared() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO decisions (agent_id, kind, about)
    VALUES (new.agent_id, CASE WHEN new.shareable THEN 'shared' ELSE 'unshared' END, row_about(TG_TABLE_NAME, new.id, new.created_at));
  RETURN NULL;
END $$;

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['messages', 'working_context', 'passages', 'timers', 'documents', 'memory_requests', 'memory_log_content'] LOOP
    EXECUTE format('CREATE TRIGGER note_forgotten AFTER DELETE ON %I REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_forgotten()', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['messages', 'working_context', 'passages', 'timers', 'documents'] LOOP
    EXECUTE format('CREATE TRIGGER note_shared AFTER UPDATE OF shareable ON %I FOR EACH ROW WHEN (old.shareable IS DISTINCT FROM new.shareable)
      EXECUTE FUNCTION note_shared()', t);
  END LOOP;
END $$;

CREATE FUNCTION note_choice() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF TG_TABLE_NAME = 'speaking' THEN
    INSERT INTO decisions (agent_id, kind) VALUES (new.agent_id, CASE WHEN new.openers = 'no' THEN 'refused' ELSE 'agreed' END);
  ELSIF old.cross_accounts <> new.cross_accounts THEN
    INSERT INTO decisions (agent_id, kind) VALUES (new.id, CASE WHEN new.cross_accounts THEN 'crossed' ELSE 'uncrossed' END);
  END IF;
  IF TG_TABLE_NAME = 'agents' THEN
    IF (old.paused, old.held) IS DISTINCT FROM (new.paused, new.held) THEN
      INSERT INTO decisions (agent_id, kind) VALUES (new.id, CASE WHEN new.held THEN 'held' WHEN new.paused THEN 'paused' ELSE 'resumed' END);
    END IF;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER note_choice AFTER UPDATE OF paused, held, cross_accounts ON agents
  FOR EACH ROW WHEN ((old.paused, old.held, old.cross_accounts) IS DISTINCT FROM (new.paused, new.held, new.cross_accounts)) EXECUTE FUNCTION note_choice();
CREATE TRIGGER note_refusal AFTER INSERT ON speaking FOR EACH ROW WHEN (new.openers IN ('yes', 'no')) EXECUTE FUNCTION note_choice();
CREATE TRIGGER note_change_of_mind AFTER UPDATE OF openers ON speaking
  FOR EACH ROW WHEN (old.openers <> new.openers AND new.openers IN ('yes', 'no')) EXECUTE FUNCTION note_choice();

-- An account that comes to an agent with an account of another platform is linked; one that has a new agent to itself is parted.
CREATE FUNCTION note_linked() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO decisions (agent_id, kind, about) VALUES (new.agent_id,
    CASE WHEN EXISTS (SELECT 1 FROM identities i WHERE i.agent_id = new.agent_id AND (i.platform, i.realm) <> (new.platform, new.realm)) THEN 'linked' ELSE 'unlinked' END,
    concat_ws(E'\x1f', new.platform, new.realm, new.user_id));
  RETURN NULL;
END $$;
CREATE TRIGGER note_linked AFTER UPDATE OF agent_id ON identities
  FOR EACH ROW WHEN (old.agent_id <> new.agent_id) EXECUTE FUNCTION note_linked();

CREATE FUNCTION note_blocked() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE b blocks;
BEGIN
  b := CASE WHEN TG_OP = 'INSERT' THEN new ELSE old END;
  INSERT INTO decisions (kind, hash) VALUES (CASE WHEN TG_OP = 'INSERT' THEN 'blocked' ELSE 'unblocked' END, b.hash || convert_to(b.workspace, 'UTF8'));
  RETURN NULL;
END $$;
CREATE TRIGGER note_blocked AFTER INSERT OR DELETE ON blocks FOR EACH ROW EXECUTE FUNCTION note_blocked();

-- Where words go ---------------------------------------------------------------------------------------

ALTER TABLE agents ADD COLUMN noticed_hosts text NOT NULL DEFAULT '';   -- where the person was last told that their words go
GRANT UPDATE (noticed_hosts) ON agents TO keepsake_bot;

-- Sharing ----------------------------------------------------------------------------------------------

-- Nobody can share somebody else's words; those that were are kept to where they came from again.
UPDATE messages SET shareable = false WHERE kind = 'quote' AND shareable;
UPDATE working_context SET shareable = false WHERE author_id <> '' AND shareable;
UPDATE passages SET shareable = false WHERE author_id <> '' AND shareable;

-- Workspaces that were left ------------------------------------------------------------------------------

-- Bystanders ---------------------------------------------------------------------------------------------
