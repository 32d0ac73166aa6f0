-- Run by the owner role.

-- Up to which message everything on a platform was dealt with, whether it was taken in or not. Unlike the newest message taken in, it stays
-- where it is while something before it has not been read. Names nobody.
CREATE TABLE heard (
  platform   text PRIMARY KEY,
  message_id text NOT NULL
);
REVOKE ALL ON heard FROM PUBLIC;

CREATE FUNCTION heard_until(p_platform text) RETURNS text
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT message_id FROM heard WHERE platform = p_platform
$$;

-- It never goes back; ids are numbers that grow with time.
CREATE FUNCTION hear_until(p_platform text, p_message text) RETURNS void
LANGUAGE sql SECURITY DEFINER AS $$
  INSERT INTO heard (platform, message_id) VALUES (p_platform, p_message)
  ON CONFLICT (platform) DO UPDATE SET message_id = excluded.message_id
    WHERE (length(excluded.message_id), excluded.message_id) > (length(heard.message_id), heard.message_id)
$$;

-- Every channel of a platform that the bot knows, those with the newest messages first; ids alone. The newest message that is kept of each
-- (empty: none) stands in an index, whatever the age of the channel.
DROP FUNCTION newest_messages(text, timestamptz);
CREATE FUNCTION newest_messages(p_platform text) RETURNS TABLE (channel text, workspace text, message_id text)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT p.external_id, p.workspace, coalesce(n.id, '') FROM places p LEFT JOIN LATERAL (
    SELECT m.platform_id AS id FROM messages m WHERE m.place_id = p.id AND m.platform_id IS NOT NULL AND m.kind <> 'quote'
    ORDER BY m.platform_id DESC LIMIT 1) n ON true
  WHERE p.platform = p_platform
  ORDER BY length(n.id) DESC NULLS LAST, n.id DESC, p.id DESC
$$;
