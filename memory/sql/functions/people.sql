-- Who is who, and who may not be heard or cannot be reached. Across agents: ids and states only.

-- A line of the bot's own, given by language, in the language of a locale; in English where there is none.
CREATE FUNCTION in_their_language(p_locale text, p_lines jsonb) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(p_lines->>lower(split_part(replace(p_locale, '_', '-'), '-', 1)), p_lines->>'en')
$$;

-- Finds or makes the agent of a person. Two first messages at once meet in the unique key; one that is being linked away is waited for, and
-- looked up again.
CREATE FUNCTION agent_of(p_platform text, p_realm text, p_user text, p_name text, p_locale text, p_zone text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE found bigint; again bigint; made bigint;
BEGIN
  SELECT coalesce(merged_into, agent_id) INTO found FROM identities
    WHERE platform = p_platform AND realm = p_realm AND user_id = p_user;
  IF found IS NULL THEN
    INSERT INTO agents (locale, timezone) VALUES (p_locale, p_zone) RETURNING id INTO made;
    INSERT INTO identities (platform, realm, user_id, agent_id, display_name)
      VALUES (p_platform, p_realm, p_user, made, p_name) ON CONFLICT DO NOTHING;
    SELECT coalesce(merged_into, agent_id) INTO found FROM identities
      WHERE platform = p_platform AND realm = p_realm AND user_id = p_user;
    IF found <> made THEN DELETE FROM agents WHERE id = made; END IF;
  ELSE
    UPDATE identities SET display_name = p_name, unreachable_since = NULL
      WHERE platform = p_platform AND realm = p_realm AND user_id = p_user
        AND (display_name <> p_name OR unreachable_since IS NOT NULL);
  END IF;
  LOOP
    PERFORM 1 FROM agents WHERE id = found FOR KEY SHARE;
    SELECT coalesce(merged_into, agent_id) INTO again FROM identities
      WHERE platform = p_platform AND realm = p_realm AND user_id = p_user;
    -- Erased meanwhile: they are met as if for the first time.
    IF again IS NULL THEN RETURN agent_of(p_platform, p_realm, p_user, p_name, p_locale, p_zone); END IF;
    EXIT WHEN again = found;
    found := again;
  END LOOP;
  RETURN found;
END $$;

-- The agent of a person, without making one.
CREATE FUNCTION known_agent(p_platform text, p_realm text, p_user text) RETURNS bigint
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT coalesce(merged_into, agent_id) FROM identities WHERE platform = p_platform AND realm = p_realm AND user_id = p_user
$$;

-- Everybody, for the operator's list.
CREATE FUNCTION people() RETURNS TABLE (agent_id bigint, platform text, realm text, user_id text, created_at timestamptz)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT coalesce(merged_into, agent_id), platform, realm, user_id, created_at FROM identities ORDER BY created_at, user_id
$$;

-- The people whom a platform shows under a name; ids only.
CREATE FUNCTION people_called(p_platform text, p_realm text, p_name text) RETURNS TABLE (agent_id bigint, user_id text)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT coalesce(merged_into, agent_id), user_id FROM identities
  WHERE platform = p_platform AND realm = p_realm AND lower(display_name) = lower(p_name) ORDER BY user_id LIMIT 5
$$;

-- How many people talk to the bot in a workspace.
CREATE FUNCTION people_in(p_platform text, p_workspace text) RETURNS bigint
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT count(DISTINCT c.agent_id) FROM conversations c JOIN places p ON p.id = c.place_id
  WHERE p.platform = p_platform AND p.workspace = p_workspace AND p_workspace <> ''
$$;

-- Pauses one person, or with null everybody, or ends that again where an operator had done it. Returns whom it changed.
CREATE FUNCTION hold(p_agent bigint, p_held boolean) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER AS $$
  UPDATE agents SET paused = p_held, held = p_held, version = version + 1
    WHERE (p_agent IS NULL OR id = p_agent) AND CASE WHEN p_held THEN NOT paused ELSE held END RETURNING id
$$;

-- Blocks somebody or ends it. Returns whether that changed anything.
CREATE FUNCTION block(p_platform text, p_realm text, p_user text, p_workspace text, p_blocked boolean, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF p_blocked THEN
    INSERT INTO blocks (hash, workspace, at) VALUES (block_hash(p_platform, p_realm, p_user), p_workspace, p_now) ON CONFLICT DO NOTHING;
  ELSE
    DELETE FROM blocks WHERE hash = block_hash(p_platform, p_realm, p_user) AND workspace = p_workspace;
  END IF;
  RETURN FOUND;
END $$;

-- Whether somebody is blocked there or everywhere.
CREATE FUNCTION blocked(p_platform text, p_realm text, p_user text, p_workspace text) RETURNS boolean
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM blocks WHERE hash = block_hash(p_platform, p_realm, p_user) AND workspace IN ('', p_workspace))
$$;

-- The accounts of an agent's person on a platform. No definer's rights and no settings, so that it is planned with the query around it.
CREATE FUNCTION accounts_at(p_agent bigint, p_platform text, p_realm text) RETURNS SETOF identities LANGUAGE sql STABLE AS $$
  SELECT * FROM identities WHERE (merged_into = p_agent OR (agent_id = p_agent AND merged_into IS NULL)) AND platform = p_platform AND realm = p_realm
$$;

-- Under which names the person of an agent is met in a direct message: who wrote there, or as long as nobody did all of that platform's.
CREATE FUNCTION met_at(p_agent bigint, p_place bigint) RETURNS TABLE (platform text, realm text, user_id text, unreachable_since timestamptz)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH own AS (
    SELECT i.* FROM places p, accounts_at(p_agent, p.platform, p.realm) i WHERE p.id = p_place AND p.kind = 'direct'),
  wrote AS (
    SELECT o.* FROM own o WHERE (SELECT count(*) FROM own) > 1 AND EXISTS (
      SELECT 1 FROM messages m JOIN conversations c ON c.id = m.conversation_id
      WHERE c.agent_id = p_agent AND c.place_id = p_place AND m.author_id = o.platform || ':' || o.realm || ':' || o.user_id))
  SELECT platform, realm, user_id, unreachable_since FROM wrote
  UNION ALL SELECT platform, realm, user_id, unreachable_since FROM own WHERE NOT EXISTS (SELECT FROM wrote)
$$;

-- A platform refuses to deliver to the person themselves; cleared by agent_of when they write again. Returns how many accounts that are.
CREATE FUNCTION mark_unreachable(p_agent bigint, p_place bigint, p_now timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER AS $$
  WITH marked AS (
    UPDATE identities i SET unreachable_since = p_now FROM met_at(p_agent, p_place) m
    WHERE i.platform = m.platform AND i.realm = m.realm AND i.user_id = m.user_id AND i.unreachable_since IS NULL RETURNING 1)
  SELECT count(*) FROM marked
$$;

-- Whether the person of an agent cannot be written to in that direct message. Asked before every message, so it looks at the few first.
CREATE FUNCTION unreachable_at(p_agent bigint, p_place bigint) RETURNS boolean
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM identities WHERE unreachable_since IS NOT NULL AND (agent_id = p_agent OR merged_into = p_agent))
     AND coalesce((SELECT bool_and(unreachable_since IS NOT NULL) FROM met_at(p_agent, p_place)), false)
$$;

-- For the operator's list of people.
CREATE FUNCTION unreachable_people() RETURNS TABLE (platform text, realm text, user_id text, unreachable_since timestamptz)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT platform, realm, user_id, unreachable_since FROM identities WHERE unreachable_since IS NOT NULL
$$;
