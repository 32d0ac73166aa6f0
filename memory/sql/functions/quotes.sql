-- Where the words of a message are, here and as quotes elsewhere.

-- Where a message of a platform stands: in events that hold its words, in messages, or nowhere any more. One row an event or message.
CREATE FUNCTION locate(p_platform text, p_realm text, p_external text, p_ids text[])
RETURNS TABLE (agent_id bigint, place_id bigint, event_id bigint, message_id bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH here AS (SELECT id FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external)
  SELECT e.agent_id, e.place_id, e.id, NULL::bigint FROM events e JOIN here ON e.place_id = here.id
    WHERE e.payload->>'message_id' = ANY (p_ids) AND e.payload ? 'text' AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.event_id = e.id)
  UNION ALL
  SELECT m.agent_id, m.place_id, m.event_id, m.id FROM messages m JOIN here ON m.place_id = here.id WHERE m.platform_id = ANY (p_ids)
$$;

-- Where messages of a platform stand as quotes: in messages, and in events.
CREATE FUNCTION locate_quotes(p_platform text, p_realm text, p_origins text[])
RETURNS TABLE (agent_id bigint, place_id bigint, event_id bigint, message_id bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT m.agent_id, m.place_id, m.event_id, m.id FROM messages m JOIN places p ON p.id = m.place_id
    WHERE m.kind = 'quote' AND m.platform_id COLLATE "C" = ANY (p_origins) AND p.platform = p_platform AND p.realm = p_realm
  UNION ALL
  SELECT e.agent_id, e.place_id, e.id, NULL::bigint FROM events e JOIN places p ON p.id = e.place_id
    WHERE e.payload ? 'quotes' AND p.platform = p_platform AND p.realm = p_realm
      AND EXISTS (SELECT 1 FROM jsonb_array_elements(e.payload->'quotes') q WHERE q->>'origin' = ANY (p_origins))
  ORDER BY 1, 4
$$;

-- The newest messages of a channel that stand anywhere as messages, as quotes or in events; ids alone.
CREATE FUNCTION kept_messages(p_platform text, p_realm text, p_external text, p_limit integer) RETURNS SETOF text
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH here AS (SELECT id FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external),
  found AS (
    SELECT m.platform_id AS id FROM messages m JOIN here ON m.place_id = here.id WHERE m.platform_id IS NOT NULL AND m.kind <> 'quote'
    UNION
    SELECT e.payload->>'message_id' FROM events e JOIN here ON e.place_id = here.id WHERE e.payload ? 'text' AND e.payload->>'message_id' IS NOT NULL
    UNION
    SELECT substr(m.platform_id, length(p_external) + 2) FROM messages m JOIN places p ON p.id = m.place_id
      WHERE m.kind = 'quote' AND p.platform = p_platform AND p.realm = p_realm
        AND m.platform_id COLLATE "C" >= p_external || '/' AND m.platform_id COLLATE "C" < p_external || '0'
    UNION
    SELECT substr(q->>'origin', length(p_external) + 2) FROM events e JOIN places p ON p.id = e.place_id, jsonb_array_elements(e.payload->'quotes') q
      WHERE e.payload ? 'quotes' AND p.platform = p_platform AND p.realm = p_realm AND starts_with(q->>'origin', p_external || '/'))
  SELECT id FROM found ORDER BY length(id) DESC, id COLLATE "C" DESC LIMIT p_limit
$$;

-- All of them, of a channel and of the threads of it that are known or (on Slack, `channel:thread`) are quoted from; ids alone.
CREATE FUNCTION kept_within(p_platform text, p_realm text, p_external text) RETURNS TABLE (channel text, ids text[])
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH here AS (
    SELECT p_external AS channel
    UNION SELECT t.external_id FROM places t JOIN places c ON c.id = t.parent_id
      WHERE c.platform = p_platform AND c.realm = p_realm AND c.external_id = p_external
    UNION SELECT split_part(m.platform_id, '/', 1) FROM messages m JOIN places p ON p.id = m.place_id
      WHERE m.kind = 'quote' AND p.platform = p_platform AND p.realm = p_realm
        AND m.platform_id COLLATE "C" >= p_external || ':' AND m.platform_id COLLATE "C" < p_external || ';')
  SELECT h.channel, array_agg(k) FROM here h, kept_messages(p_platform, p_realm, h.channel, NULL) k GROUP BY 1
$$;

-- Which of these people (platform:realm:user) are quoted nowhere, although their platform shows what they said: who was erased within the last
-- week and has not come back, whose memory is paused, and who is blocked in this workspace. p_speaker: with their own words people bring along
-- what they like, except where they were erased. p_hash_key null: nobody can have been erased.
CREATE FUNCTION not_quoted(p_authors text[], p_speaker text, p_workspace text, p_hash_key bytea) RETURNS SETOF text
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH asked AS (
    SELECT author, split_part(author, ':', 1) AS platform, split_part(author, ':', 2) AS realm, substr(author, length(split_part(author, ':', 1))
      + length(split_part(author, ':', 2)) + 3) AS user_id FROM unnest(p_authors) author)
  SELECT q.author FROM asked q LEFT JOIN identities i USING (platform, realm, user_id) LEFT JOIN agents a ON a.id = coalesce(i.merged_into, i.agent_id)
  WHERE (i.user_id IS NULL AND EXISTS (SELECT 1 FROM erased_people e
      WHERE e.hash = person_hash(p_hash_key, q.platform, q.realm, q.user_id) AND e.at > clock_timestamp() - interval '7 days'))
    OR (a.paused AND q.author <> p_speaker)
    OR blocked(q.platform, q.realm, q.user_id, p_workspace)
$$;
