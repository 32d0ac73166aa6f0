-- Run by the owner role.

-- A thread with members of its own, as Discord's private ones. Every other thread is what its channel is.
ALTER TABLE places ADD COLUMN closed boolean NOT NULL DEFAULT false;

DROP FUNCTION place_changed(text, text, text, text, text, text, text);
DROP FUNCTION place_of(text, text, text, text, text, text, text, bigint);
DROP FUNCTION take_in(text, text, text, text, text, text, text, text, text, text, text, text, text, text, jsonb, integer, timestamptz, bytea);

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
  IF EXISTS (SELECT 1 FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external) THEN
    PERFORM place_of(p_platform, p_realm, p_workspace, p_external, p_kind, p_name, p_parent, NULL, p_closed);
  END IF;
END $$;

-- The channels of a platform that are known, the public ones first: what are they now?
CREATE FUNCTION known_channels(p_platform text) RETURNS TABLE (realm text, workspace text, external_id text, kind text, name text)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT realm, workspace, external_id, kind, name FROM places
    WHERE platform = p_platform AND parent_id IS NULL AND kind <> 'direct' ORDER BY kind DESC, id DESC
$$;

-- All of the way in, in one statement: the person's agent, the place, the conversation, the event. What it makes for an event that is not
-- stored is taken back: a late redelivery must not bring an erased person's agent back.
CREATE FUNCTION take_in(p_platform text, p_realm text, p_user text, p_name text, p_locale text, p_zone text, p_workspace text, p_external text,
                        p_place_kind text, p_place_name text, p_parent text, p_kind text, p_origin text, p_idem text, p_payload jsonb, p_burst_ms integer,
                        p_now timestamptz, p_erased bytea, p_closed boolean)
RETURNS TABLE (agent_id bigint, place_id bigint, event_id bigint)
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  agent_id := agent_of(p_platform, p_realm, p_user, p_name, p_locale, p_zone);
  place_id := place_of(p_platform, p_realm, p_workspace, p_external, p_place_kind, p_place_name, p_parent, agent_id, p_closed);
  PERFORM conversation_of(agent_id, place_id);
  event_id := accept_event(agent_id, place_id, p_kind, p_origin, p_platform, p_idem, p_payload, p_burst_ms, p_now, p_erased);
  IF event_id IS NULL THEN RAISE EXCEPTION USING ERRCODE = 'KS003'; END IF;
  RETURN NEXT;
EXCEPTION WHEN SQLSTATE 'KS003' THEN
  RETURN NEXT;
END $$;
