-- Timers that are due, or to be reckoned again.

-- The due timers, locked until the transaction ends; the caller makes events of them in the same transaction. Those of an agent whose
-- zone has just changed wait for their new time.
CREATE FUNCTION due_timers(p_now timestamptz, p_limit integer)
RETURNS TABLE (timer_id bigint, agent_id bigint, place_id bigint, due_at timestamptz)
-- In the order of the index, whatever the planner believes of how many are due: a herd must not be sorted again for each hundred of it.
-- The agent is held, too, as an erasure takes the agent first and its timers after: neither waits for the other halfway.
LANGUAGE sql SECURITY DEFINER SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  SELECT t.id, t.agent_id, t.place_id, t.due_at FROM timers t JOIN agents a ON a.id = t.agent_id
  WHERE t.due_at <= p_now AND t.agent_id <> ALL (ARRAY(SELECT r.agent_id FROM rezoned r))
  ORDER BY t.due_at LIMIT p_limit FOR UPDATE OF t SKIP LOCKED FOR KEY SHARE OF a SKIP LOCKED
$$;

-- Agents whose timers are to be reckoned again, locked.
CREATE FUNCTION rezoned_agents(p_limit integer) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER AS $$ SELECT agent_id FROM rezoned ORDER BY agent_id LIMIT p_limit FOR UPDATE SKIP LOCKED $$;
