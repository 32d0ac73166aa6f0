-- Speaking first: who gave leave, how things are with them, what it costs; and welcomes.

-- People with leave whose timers were not made by this plan, each with their direct message (null: none yet), locked. Two ranges of one
-- index instead of an inequality, so that a million who are planned cost nothing.
CREATE FUNCTION unplanned(p_plan text, p_limit integer) RETURNS TABLE (agent_id bigint, place_id bigint)
LANGUAGE sql SECURITY DEFINER SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  WITH found AS (
    SELECT * FROM (SELECT s.agent_id FROM speaking s JOIN agents a ON a.id = s.agent_id WHERE s.openers = 'yes' AND s.planned < p_plan
      ORDER BY s.planned, s.agent_id LIMIT p_limit FOR UPDATE OF s SKIP LOCKED FOR KEY SHARE OF a SKIP LOCKED) earlier
    UNION ALL
    SELECT * FROM (SELECT s.agent_id FROM speaking s JOIN agents a ON a.id = s.agent_id WHERE s.openers = 'yes' AND s.planned > p_plan
      ORDER BY s.planned, s.agent_id LIMIT p_limit FOR UPDATE OF s SKIP LOCKED FOR KEY SHARE OF a SKIP LOCKED) later)
  SELECT f.agent_id, direct_of(f.agent_id, NULL) FROM found f LIMIT p_limit
$$;

-- How things stand with a person, for the decision whether to speak first at a place now. `p_turn` is the asking turn, which is no reason
-- to be silent. `wrote` are the times of their latest messages, from which a natural hour is drawn.
CREATE FUNCTION standing(p_agent bigint, p_place bigint, p_turn bigint) RETURNS TABLE (
  openers text, promised text, zone text, quiet_from time, quiet_to time, daily_cap smallint, paused boolean, blocked boolean, reachable boolean,
  direct boolean, busy boolean, last_active timestamptz, crisis_at timestamptz, quiet_until timestamptz, spoken timestamptz[], wrote timestamptz[])
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT coalesce(s.openers, 'unasked'), coalesce(s.promised, ''), coalesce(a.timezone, ''), s.quiet_from, s.quiet_to, s.daily_cap, a.paused,
    EXISTS (SELECT 1 FROM accounts_at(a.id, p.platform, p.realm) i WHERE blocked(i.platform, i.realm, i.user_id, p.workspace)),
    EXISTS (SELECT 1 FROM accounts_at(a.id, p.platform, p.realm) i WHERE i.unreachable_since IS NULL),
    p.kind = 'direct' AND p.owner_id IS NOT DISTINCT FROM a.id,
    EXISTS (SELECT 1 FROM turns t WHERE t.agent_id = a.id AND t.state = 'running' AND t.id IS DISTINCT FROM p_turn)
      OR EXISTS (SELECT 1 FROM events e WHERE e.agent_id = a.id AND e.status = 0 AND e.origin = 'person'),
    -- events may be gone by their retention, messages by another
    greatest(w.times[1], (SELECT m.created_at FROM messages m WHERE m.agent_id = a.id AND m.role = 'user' AND m.kind = 'message' ORDER BY m.created_at DESC LIMIT 1)),
    s.crisis_at, s.quiet_until,
    ARRAY(SELECT o.at FROM openers o WHERE o.agent_id = a.id AND o.said ORDER BY o.at DESC LIMIT 25),
    w.times
  FROM agents a JOIN places p ON p.id = p_place LEFT JOIN speaking s ON s.agent_id = a.id,
    LATERAL (SELECT ARRAY(SELECT e.created_at FROM events e WHERE e.agent_id = a.id AND e.origin = 'person' ORDER BY e.seq DESC LIMIT 40) AS times) w
  WHERE a.id = p_agent
$$;

-- Whether somebody's coming online is an event: they said yes to being spoken to first, can be reached, and did not come online since
-- p_since, in whatever guild or process that was seen.
CREATE FUNCTION wants_login(p_platform text, p_realm text, p_user text, p_since timestamptz) RETURNS boolean
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT EXISTS (
    SELECT 1 FROM identities i JOIN speaking s ON s.agent_id = coalesce(i.merged_into, i.agent_id)
    WHERE i.platform = p_platform AND i.realm = p_realm AND i.user_id = p_user AND s.openers = 'yes' AND i.unreachable_since IS NULL
      AND NOT EXISTS (SELECT 1 FROM events e WHERE e.agent_id = s.agent_id AND e.kind = 'login' AND e.created_at > p_since))
$$;

-- What the timed turns of a time cost, in sums: how often the model was asked, how often it spoke, what arrived, with how many calls.
CREATE FUNCTION opener_costs(p_since timestamptz)
RETURNS TABLE (considered bigint, said bigint, delivered bigint, calls bigint, tokens bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH o AS (SELECT * FROM openers WHERE at >= p_since)
  SELECT count(*), count(*) FILTER (WHERE o.said),
    count(*) FILTER (WHERE o.said AND EXISTS (SELECT 1 FROM outbox b WHERE b.turn_id = o.turn_id AND b.state = 'sent')),
    (SELECT count(*) FROM usage u JOIN o ON o.turn_id = u.turn_id),
    (SELECT coalesce(sum(u.prompt_tokens + u.completion_tokens), 0) FROM usage u JOIN o ON o.turn_id = u.turn_id)
  FROM o
$$;

-- True for whoever may welcome: once per hash. Drops what is over.
CREATE FUNCTION claim_welcome(p_hash bytea, p_until timestamptz, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  DELETE FROM welcomes WHERE until <= p_now;
  INSERT INTO welcomes (hash, until) VALUES (p_hash, p_until) ON CONFLICT DO NOTHING;
  RETURN FOUND;
END $$;

-- The welcome did not go out and may be tried when the event comes again.
CREATE FUNCTION release_welcome(p_hash bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER AS $$ DELETE FROM welcomes WHERE hash = p_hash $$;
