-- What timers need across people: which fail, and whom a message of theirs notifies.

-- The timers that wait and could not be reckoned or fired when they last were due, in numbers alone.
CREATE FUNCTION faulty_timers() RETURNS TABLE (timer_id bigint, faults smallint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$ SELECT id, faults FROM timers WHERE faults > 0 AND due_at IS NOT NULL ORDER BY id LIMIT 100 $$;

-- The user id of an agent's person on the platform of a place; of several accounts there the one that was seen first.
CREATE FUNCTION person_at(p_agent bigint, p_place bigint) RETURNS text
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT i.user_id FROM identities i JOIN places p ON p.id = p_place AND i.platform = p.platform AND i.realm = p.realm
  WHERE coalesce(i.merged_into, i.agent_id) = p_agent ORDER BY i.unreachable_since NULLS FIRST, i.created_at, i.user_id LIMIT 1
$$;
