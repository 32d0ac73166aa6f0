-- Run by the owner role.

-- What of a day's budgets is taken, for `bot usage show`: the whole bot's first (without an agent), then each person's, the largest first.
CREATE FUNCTION spent_on(p_day date) RETURNS TABLE (agent_id bigint, tokens bigint, micros bigint, told boolean)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT NULL::bigint, t.tokens, t.micros, false FROM spending_total t WHERE t.day = p_day
  UNION ALL (SELECT s.agent_id, s.tokens, s.micros, s.told FROM spending s WHERE s.day = p_day ORDER BY s.tokens DESC, s.agent_id)
$$;
