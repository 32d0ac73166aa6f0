-- The heads of all channels are read once, by the index of what is unsent, and the few that may go are looked up by their ids: the planner
-- would walk everything that was ever sent, row by row, and compare it with each head.
CREATE OR REPLACE FUNCTION claim_outbox(p_platform text, p_channels text[], p_limit integer, p_now timestamptz, p_doubtful timestamptz, p_stopped text DEFAULT '')
RETURNS TABLE (outbox_id bigint, agent_id bigint, place_id bigint, doubtful boolean)
LANGUAGE sql SECURITY DEFINER SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  WITH heads AS MATERIALIZED (
    SELECT DISTINCT ON (channel) o.id, o.state, o.not_before, o.sending_since FROM outbox o
    WHERE platform = p_platform AND o.state IN ('waiting', 'sending', 'streaming') AND (p_channels IS NULL OR channel = ANY (p_channels))
      AND (o.state <> 'streaming' OR NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = o.turn_id AND t.state = 'running'))
    ORDER BY channel, o.id),
  ready AS MATERIALIZED (
    SELECT h.id FROM heads h
    WHERE (h.state = 'waiting' AND coalesce(h.not_before, p_now) <= p_now) OR h.state = 'streaming'
       OR (h.state = 'sending' AND (h.sending_since < p_doubtful OR h.not_before <= p_now))
    ORDER BY h.id LIMIT p_limit),
  taken AS (
    SELECT o.id, o.state AS old_state FROM outbox o
    WHERE o.id = ANY (ARRAY(SELECT ready.id FROM ready))
      AND ((o.state = 'waiting' AND coalesce(o.not_before, p_now) <= p_now) OR o.state = 'streaming'
        OR (o.state = 'sending' AND (o.sending_since < p_doubtful OR o.not_before <= p_now)))
    FOR UPDATE OF o SKIP LOCKED)
  UPDATE outbox o SET state = 'sending', sending_since = p_now, not_before = NULL, attempts = attempts + 1,
      body = CASE taken.old_state WHEN 'streaming' THEN body || p_stopped ELSE body END
    FROM taken WHERE o.id = taken.id
  RETURNING o.id, o.agent_id, o.place_id, taken.old_state IN ('sending', 'streaming')
$$;

-- As before, and a public thread brings its channel along, where nobody may ever have spoken to the bot: when the channel turns private, or
-- somebody can no longer read it, the thread follows.
CREATE OR REPLACE FUNCTION place_of(p_platform text, p_realm text, p_workspace text, p_external text, p_kind text, p_name text,
                         p_parent text, p_agent bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE place bigint; parent bigint; old_kind text; owner bigint; parent_kind text;
BEGIN
  IF p_parent IS NOT NULL THEN
    SELECT id, kind INTO parent, parent_kind FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_parent;
    IF parent IS NULL AND p_kind = 'public' THEN
      INSERT INTO places (platform, realm, workspace, external_id, kind) VALUES (p_platform, p_realm, p_workspace, p_parent, 'public')
        ON CONFLICT (platform, realm, external_id) DO UPDATE SET name = places.name RETURNING id, kind INTO parent, parent_kind;
    END IF;
    -- A thread is never wider than its channel, whatever is said of it.
    IF p_kind = 'public' AND parent_kind <> 'public' THEN p_kind := parent_kind; END IF;
  END IF;
  owner := CASE WHEN p_kind = 'direct' THEN p_agent END;
  SELECT id, kind INTO place, old_kind FROM places
    WHERE platform = p_platform AND realm = p_realm AND external_id = p_external;
  UPDATE places SET parent_id = parent WHERE id = place AND parent_id IS NULL AND parent IS NOT NULL;
  IF place IS NULL THEN
    INSERT INTO places (platform, realm, workspace, external_id, kind, name, parent_id, owner_id)
      VALUES (p_platform, p_realm, p_workspace, p_external, p_kind, p_name, parent, owner)
      ON CONFLICT (platform, realm, external_id) DO UPDATE SET name = excluded.name RETURNING id INTO place;
  ELSIF old_kind <> p_kind THEN
    UPDATE places SET kind = p_kind, name = p_name, policy_version = policy_version + 1 WHERE id = place;
    IF p_kind <> 'public' THEN
      UPDATE places SET kind = p_kind, policy_version = policy_version + 1 WHERE parent_id = place AND kind = 'public';
    END IF;
  ELSE
    UPDATE places SET name = p_name, owner_id = coalesce(owner_id, owner) WHERE id = place AND (name <> p_name OR owner_id IS DISTINCT FROM coalesce(owner_id, owner));
  END IF;
  RETURN place;
END $$;
