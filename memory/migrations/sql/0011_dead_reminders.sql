-- Run by the owner role.

-- The turns that came to nothing with a reminder in them that was not said, since a time, oldest first.
CREATE FUNCTION dead_reminders(p_since timestamptz, p_limit integer) RETURNS TABLE (agent_id bigint, place_id bigint, turn_id bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT DISTINCT e.agent_id, e.place_id, e.turn_id FROM events e
  WHERE e.status = 2 AND e.kind = 'timer' AND e.payload->>'timer' = 'reminder' AND e.turn_id IS NOT NULL
    AND e.done_at > p_since
  ORDER BY e.turn_id LIMIT p_limit
$$;
