-- What models cost: the day's budgets, and sums for the operator.

-- Takes an estimate off the day's budgets before a model call, of the person's first and of the whole bot's, or takes nothing.
-- A limit of 0 is none. Returns whose budget is spent: 'person', 'bot', or '' when the call may be made.
CREATE FUNCTION reserve_spending(p_agent bigint, p_day date, p_tokens bigint, p_micros bigint,
  p_person_tokens bigint, p_person_micros bigint, p_bot_tokens bigint, p_bot_micros bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE own spending; every spending_total;
BEGIN
  INSERT INTO spending (agent_id, day) VALUES (p_agent, p_day) ON CONFLICT DO NOTHING;
  INSERT INTO spending_total (day) VALUES (p_day) ON CONFLICT DO NOTHING;
  SELECT * INTO own FROM spending WHERE agent_id = p_agent AND day = p_day FOR UPDATE;
  IF (p_person_tokens > 0 AND own.tokens + p_tokens > p_person_tokens) OR (p_person_micros > 0 AND own.micros + p_micros > p_person_micros) THEN
    RETURN 'person';
  END IF;
  SELECT * INTO every FROM spending_total WHERE day = p_day FOR UPDATE;
  IF (p_bot_tokens > 0 AND every.tokens + p_tokens > p_bot_tokens) OR (p_bot_micros > 0 AND every.micros + p_micros > p_bot_micros) THEN
    RETURN 'bot';
  END IF;
  UPDATE spending SET tokens = tokens + p_tokens, micros = micros + p_micros WHERE agent_id = p_agent AND day = p_day;
  UPDATE spending_total SET tokens = tokens + p_tokens, micros = micros + p_micros WHERE day = p_day;
  RETURN '';
END $$;

-- Corrects an estimate by what the call really cost; negative numbers give back.
CREATE FUNCTION settle_spending(p_agent bigint, p_day date, p_tokens bigint, p_micros bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER AS $$
  UPDATE spending SET tokens = greatest(tokens + p_tokens, 0), micros = greatest(micros + p_micros, 0) WHERE agent_id = p_agent AND day = p_day;
  UPDATE spending_total SET tokens = greatest(tokens + p_tokens, 0), micros = greatest(micros + p_micros, 0) WHERE day = p_day;
$$;

-- True once a day and person: whoever gets it tells them that the budget is spent.
CREATE FUNCTION tell_spent(p_agent bigint, p_day date) RETURNS boolean
LANGUAGE sql SECURITY DEFINER AS $$
  WITH first AS (UPDATE spending SET told = true WHERE agent_id = p_agent AND day = p_day AND NOT told RETURNING 1) SELECT EXISTS (SELECT FROM first)
$$;

-- Once a day and person one of the lines, in their language (else null); they may have been told by the token budget just as well: both mean that it is enough for today.
CREATE FUNCTION tell_today(p_platform text, p_realm text, p_user text, p_day date, p_lines jsonb) RETURNS text
LANGUAGE sql SECURITY DEFINER AS $$
  WITH told AS (
    INSERT INTO spending (agent_id, day, told) SELECT a, p_day, true FROM known_agent(p_platform, p_realm, p_user) a WHERE a IS NOT NULL
    ON CONFLICT (agent_id, day) DO UPDATE SET told = true WHERE NOT spending.told RETURNING agent_id)
  SELECT in_their_language(a.locale, p_lines) FROM told JOIN agents a ON a.id = told.agent_id
$$;

-- The operator starts a day's budget again, of one person or with null of everybody and the whole bot. Returns the people concerned.
CREATE FUNCTION reset_spending(p_agent bigint, p_day date) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE n bigint;
BEGIN
  DELETE FROM spending WHERE day = p_day AND (p_agent IS NULL OR agent_id = p_agent);
  GET DIAGNOSTICS n = ROW_COUNT;
  IF p_agent IS NULL THEN DELETE FROM spending_total WHERE day = p_day; END IF;
  RETURN n;
END $$;

-- What of a day's budgets is taken, for `bot usage show`: the whole bot's first (without an agent), then each person's, the largest first.
CREATE FUNCTION spent_on(p_day date) RETURNS TABLE (agent_id bigint, tokens bigint, micros bigint, told boolean)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT NULL::bigint, t.tokens, t.micros, false FROM spending_total t WHERE t.day = p_day
  UNION ALL (SELECT s.agent_id, s.tokens, s.micros, s.told FROM spending s WHERE s.day = p_day ORDER BY s.tokens DESC, s.agent_id)
$$;

-- Model calls by person, purpose and model since a time, for `bot usage`; ids and sums only.
CREATE FUNCTION usage_since(p_since timestamptz) RETURNS TABLE (agent_id bigint, purpose text, model text, calls bigint, prompt_tokens bigint,
                                                                cached_tokens bigint, completion_tokens bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT agent_id, purpose, model, count(*), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens) FROM usage
  WHERE at >= p_since GROUP BY 1, 2, 3 ORDER BY sum(prompt_tokens) DESC, 1
$$;

-- Model calls since a time of turns in one workspace, or with null of all; of one person, or with null of everybody. Sums only.
CREATE FUNCTION usage_of(p_agent bigint, p_platform text, p_workspace text, p_since timestamptz)
RETURNS TABLE (model text, people bigint, calls bigint, prompt_tokens bigint, cached_tokens bigint, completion_tokens bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT u.model, count(DISTINCT u.agent_id), count(*), sum(u.prompt_tokens)::bigint, sum(u.cached_tokens)::bigint, sum(u.completion_tokens)::bigint
  FROM usage u LEFT JOIN turns t ON t.id = u.turn_id LEFT JOIN places p ON p.id = t.place_id
  WHERE u.at >= p_since AND (p_agent IS NULL OR u.agent_id = p_agent)
    AND (p_workspace IS NULL OR (p.platform = p_platform AND p.workspace = p_workspace AND p.kind <> 'direct'))
  GROUP BY 1 ORDER BY 4 DESC, 1
$$;
