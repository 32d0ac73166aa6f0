-- Places and conversations, and what may be used where (rule 5 of the design).

-- The one way in which a place changes: its threads change with it. The place's lock keeps a thread that is being made from being missed.
CREATE FUNCTION settle_place(p_place bigint, p_kind text, p_workspace text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  PERFORM 1 FROM places WHERE id = p_place FOR NO KEY UPDATE;
  UPDATE places SET kind = p_kind, workspace = p_workspace, policy_version = policy_version + 1
    WHERE (id = p_place OR (parent_id = p_place AND NOT closed)) AND (kind <> p_kind OR workspace <> p_workspace);
END $$;

-- Finds or makes a place and takes over what its platform says of it now; p_kind null: it said nothing, so what is known stays, and a place
-- that was never seen is private until it does. What is said of a thread is said of its channel, unless it is closed: the channel is found
-- or made first, though nobody may ever have spoken to the bot there. A direct message belongs to the first agent seen in it.
CREATE FUNCTION place_of(p_platform text, p_realm text, p_workspace text, p_external text, p_kind text, p_name text, p_parent text,
                         p_agent bigint, p_closed boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE place places; channel bigint; owner bigint;
BEGIN
  SELECT * INTO place FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external;
  IF p_parent IS NOT NULL THEN
    channel := place_of(p_platform, p_realm, p_workspace, p_parent, CASE WHEN NOT p_closed THEN p_kind END, '', NULL, p_agent);
    IF p_closed THEN
      p_kind := 'private';
    ELSIF place.id IS NOT NULL AND place.parent_id IS NOT NULL THEN
      SELECT kind INTO p_kind FROM places WHERE id = channel;
    ELSE
      SELECT kind INTO p_kind FROM places WHERE id = channel FOR SHARE;
    END IF;
  END IF;
  owner := CASE WHEN p_kind = 'direct' THEN p_agent END;
  IF place.id IS NULL THEN
    INSERT INTO places (platform, realm, workspace, external_id, kind, name, parent_id, owner_id, closed)
      VALUES (p_platform, p_realm, p_workspace, p_external, coalesce(p_kind, 'private'), p_name, channel, owner, p_closed)
      ON CONFLICT (platform, realm, external_id) DO UPDATE SET name = places.name RETURNING * INTO place;
  END IF;
  IF place.kind <> p_kind OR (p_kind IS NOT NULL AND place.workspace <> p_workspace) THEN
    PERFORM settle_place(place.id, p_kind, p_workspace);
  END IF;
  UPDATE places SET name = coalesce(nullif(p_name, ''), name), parent_id = coalesce(parent_id, channel), owner_id = coalesce(owner_id, owner), closed = p_closed
    WHERE id = place.id AND (name <> coalesce(nullif(p_name, ''), name) OR closed <> p_closed
      OR (parent_id IS NULL AND channel IS NOT NULL) OR (owner_id IS NULL AND owner IS NOT NULL));
  RETURN place.id;
END $$;

-- What a platform says of a place now, where the place is known: a channel that turned private is private at once, whoever speaks next.
CREATE FUNCTION place_changed(p_platform text, p_realm text, p_workspace text, p_external text, p_kind text, p_name text, p_parent text, p_closed boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF place_known(p_platform, p_realm, p_external) IS NOT NULL THEN
    PERFORM place_of(p_platform, p_realm, p_workspace, p_external, p_kind, p_name, p_parent, NULL, p_closed);
  END IF;
END $$;

-- A place by its platform's ids, without making one.
CREATE FUNCTION place_known(p_platform text, p_realm text, p_external text) RETURNS bigint
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT id FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external
$$;

-- The channels of a platform that are known, the public ones first: what are they now?
CREATE FUNCTION known_channels(p_platform text) RETURNS TABLE (realm text, workspace text, external_id text, kind text, name text)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT realm, workspace, external_id, kind, name FROM places
    WHERE platform = p_platform AND parent_id IS NULL AND kind <> 'direct' ORDER BY kind DESC, id DESC
$$;

-- Places that a person can no longer read, or can again: what came from there is used nowhere meanwhile, not even in their direct message.
-- p_externals null: every place of the workspace (they left it, or came back). Returns the person's agent where anything changed.
CREATE FUNCTION access_changed(p_platform text, p_realm text, p_user text, p_workspace text, p_externals text[], p_lost boolean, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE a bigint;
BEGIN
  a := known_agent(p_platform, p_realm, p_user);
  IF a IS NULL THEN RETURN NULL; END IF;
  PERFORM 1 FROM agents WHERE id = a FOR NO KEY UPDATE;
  UPDATE conversations c SET lost_at = CASE WHEN p_lost THEN p_now END FROM places p
    WHERE p.id = c.place_id AND c.agent_id = a AND p.platform = p_platform AND p.realm = p_realm AND p.kind <> 'direct'
      AND CASE WHEN p_externals IS NULL THEN p_workspace <> '' AND p.workspace = p_workspace ELSE p.external_id = ANY (p_externals) OR EXISTS (SELECT 1 FROM places up WHERE up.id = p.parent_id AND up.external_id = ANY (p_externals)) END
      AND (c.lost_at IS NULL) = p_lost;
  IF NOT FOUND THEN RETURN NULL; END IF;
  UPDATE agents SET version = version + 1 WHERE id = a;
  RETURN a;
END $$;

-- The place of an import: as it is known, or made; what an old export says of a place that is known changes nothing. Null: the direct
-- message of somebody else, where nothing of this person's may ever be said.
CREATE FUNCTION import_place(p_platform text, p_realm text, p_workspace text, p_external text, p_kind text, p_name text, p_agent bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE found bigint; owner bigint;
BEGIN
  SELECT id, owner_id INTO found, owner FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external;
  IF owner <> p_agent THEN RETURN NULL; END IF;
  IF found IS NULL THEN
    INSERT INTO places (platform, realm, workspace, external_id, kind, name, owner_id)
      VALUES (p_platform, p_realm, p_workspace, p_external, p_kind, p_name, CASE WHEN p_kind = 'direct' THEN p_agent END) RETURNING id INTO found;
  END IF;
  PERFORM conversation_of(p_agent, found);
  RETURN found;
END $$;

-- Finds or makes the conversation of an agent in a place.
CREATE FUNCTION conversation_of(p_agent bigint, p_place bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE found bigint;
BEGIN
  SELECT id INTO found FROM conversations WHERE agent_id = p_agent AND place_id = p_place;
  IF found IS NULL THEN
    INSERT INTO conversations (agent_id, place_id) VALUES (p_agent, p_place)
      ON CONFLICT (agent_id, place_id) DO UPDATE SET place_id = excluded.place_id RETURNING id INTO found;
  END IF;
  RETURN found;
END $$;

-- Where a person reads what is said to them alone: the direct message they last used, of the platform and realm of `p_like` if given.
CREATE FUNCTION direct_of(p_agent bigint, p_like bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT p.id FROM conversations c JOIN places p ON p.id = c.place_id
  WHERE c.agent_id = p_agent AND p.kind = 'direct' AND p.owner_id = p_agent
    AND (p_like IS NULL OR (p.platform, p.realm) = (SELECT l.platform, l.realm FROM places l WHERE l.id = p_like))
  ORDER BY (SELECT max(t.id) FROM turns t WHERE t.conversation_id = c.id AND t.origin = 'person') DESC NULLS LAST, c.id LIMIT 1
$$;

-- Names the agent and the usable places for the rest of the transaction: rule 5 of the design, without the places that the person can no
-- longer read (where they speak, they can read). p_place null with p_everything: the person's own view, an admin's or an erasure; every
-- place of the agent is whole.
CREATE FUNCTION enter(p_agent bigint, p_place bigint, p_everything boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE here places; whole bigint[]; writable bigint[] := '{}'; public_now bigint[] := '{}'; shared bigint[] := '{}'; crosses boolean;
BEGIN
  IF p_everything THEN
    SELECT array_agg(place_id) INTO whole FROM conversations WHERE agent_id = p_agent;
    whole := array_append(whole, p_place);
    writable := whole;
  ELSIF p_place IS NOT NULL THEN
    SELECT * INTO here FROM places WHERE id = p_place;
    IF here.kind = 'direct' AND here.owner_id = p_agent THEN
      SELECT cross_accounts INTO crosses FROM agents WHERE id = p_agent;
      SELECT array_agg(p.id) INTO whole FROM conversations c JOIN places p ON p.id = c.place_id
        WHERE c.agent_id = p_agent AND c.lost_at IS NULL AND (crosses OR (p.platform = here.platform AND p.realm = here.realm));
      whole := array_append(whole, p_place);
    ELSE
      whole := ARRAY[p_place];
      SELECT coalesce(array_agg(p.id) FILTER (WHERE p.kind = 'public' AND p.workspace = here.workspace), '{}'),
             coalesce(array_agg(p.id) FILTER (WHERE p.workspace = here.workspace OR p.owner_id = p_agent), '{}')
        INTO public_now, shared FROM conversations c JOIN places p ON p.id = c.place_id
        WHERE c.agent_id = p_agent AND c.lost_at IS NULL AND p.platform = here.platform AND p.realm = here.realm;
    END IF;
    writable := ARRAY[p_place];
  END IF;
  whole := array_remove(coalesce(whole, '{}'), NULL);
  PERFORM set_config('keepsake.agent', p_agent::text, true), set_config('keepsake.whole', whole::text, true),
          set_config('keepsake.public', public_now::text, true), set_config('keepsake.shared', shared::text, true),
          set_config('keepsake.writable', array_remove(coalesce(writable, '{}'), NULL)::text, true);
END $$;

-- As `enter`, for a workspace's admin: whole are the places of that workspace alone, direct messages only of people who got the notice since
-- p_direct (null: of nobody).
-- Returns how many of the agent's places that are.
CREATE FUNCTION enter_workspace(p_agent bigint, p_platform text, p_realm text, p_workspace text, p_direct timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE here bigint[];
BEGIN
  SELECT coalesce(array_agg(p.id), '{}') INTO here FROM conversations c JOIN places p ON p.id = c.place_id
    WHERE c.agent_id = p_agent AND p.platform = p_platform AND p.realm = p_realm AND p_workspace <> '' AND p.workspace = p_workspace
      AND (p.kind <> 'direct' OR (SELECT a.noticed_at >= p_direct FROM agents a WHERE a.id = p_agent));
  PERFORM set_config('keepsake.agent', p_agent::text, true), set_config('keepsake.whole', here::text, true),
          set_config('keepsake.public', '{}', true), set_config('keepsake.shared', '{}', true),
          set_config('keepsake.writable', here::text, true);
  RETURN cardinality(here);
END $$;
