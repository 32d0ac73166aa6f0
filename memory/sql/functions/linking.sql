-- Two accounts of one person: the codes, joining their memory, and parting it again.

-- Whether a person may ask for or try one more code, and notes that they did.
CREATE FUNCTION link_try(p_agent bigint, p_kind text, p_most integer, p_since timestamptz, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  PERFORM 1 FROM agents WHERE id = p_agent FOR NO KEY UPDATE;
  DELETE FROM link_tries WHERE agent_id = p_agent AND at < p_now - interval '1 hour';
  IF (SELECT count(*) FROM link_tries WHERE agent_id = p_agent AND kind = p_kind AND at > p_since) >= p_most THEN RETURN false; END IF;
  INSERT INTO link_tries VALUES (p_agent, p_kind, p_now);
  RETURN true;
END $$;

-- Keeps a code's hash; the person's earlier codes are void. Codes whose time is over go, whosever they were.
CREATE FUNCTION link_offer(p_agent bigint, p_platform text, p_realm text, p_user text, p_hash bytea, p_until timestamptz, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  DELETE FROM links WHERE agent_id = p_agent OR until <= p_now;
  INSERT INTO links (hash, agent_id, platform, realm, user_id, until) VALUES (p_hash, p_agent, p_platform, p_realm, p_user, p_until);
END $$;

-- Takes a code, once. Returns 'taken', or why not: 'unknown' (also: over, or taken by somebody), 'own', 'alike' (both have an account there).
CREATE FUNCTION link_take(p_agent bigint, p_platform text, p_realm text, p_user text, p_hash bytea, p_now timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE l links;
BEGIN
  SELECT * INTO l FROM links WHERE hash = p_hash AND until > p_now AND taker_id IS NULL FOR UPDATE;
  IF NOT FOUND THEN RETURN 'unknown'; END IF;
  IF l.agent_id = p_agent THEN RETURN 'own'; END IF;
  IF EXISTS (SELECT 1 FROM identities a JOIN identities b USING (platform, realm) WHERE a.agent_id = l.agent_id AND b.agent_id = p_agent) THEN
    RETURN 'alike';
  END IF;
  UPDATE links SET taker_id = p_agent, taker_platform = p_platform, taker_realm = p_realm, taker_user = p_user WHERE hash = p_hash;
  RETURN 'taken';
END $$;

-- The other account of a code that was taken, for either side to look at; no row: none, over, or not theirs. p_hash null: their newest.
CREATE FUNCTION link_seen(p_agent bigint, p_hash bytea, p_now timestamptz)
RETURNS TABLE (hash bytea, platform text, realm text, user_id text, name text, mine boolean, others boolean)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT o.hash, o.platform, o.realm, o.user_id, coalesce(i.display_name, ''), o.mine, o.others FROM (
    SELECT l.hash, l.taker_platform AS platform, l.taker_realm AS realm, l.taker_user AS user_id, l.agreed AS mine, l.taker_agreed AS others, l.until FROM links l
      WHERE l.agent_id = p_agent AND l.taker_id IS NOT NULL AND l.until > p_now AND (p_hash IS NULL OR l.hash = p_hash)
    UNION ALL
    SELECT l.hash, l.platform, l.realm, l.user_id, l.taker_agreed, l.agreed, l.until FROM links l
      WHERE l.taker_id = p_agent AND l.until > p_now AND (p_hash IS NULL OR l.hash = p_hash)) o
  LEFT JOIN identities i ON i.platform = o.platform AND i.realm = o.realm AND i.user_id = o.user_id
  ORDER BY o.until DESC LIMIT 1
$$;

-- One side's yes or no; p_hash null: to their newest. After the second yes the two are one. Returns 'unknown', 'declined', 'waiting' or 'linked', and then whose
-- agent it is and whether it needs a wake-up.
CREATE FUNCTION link_answer(p_agent bigint, p_hash bytea, p_yes boolean, p_now timestamptz) RETURNS TABLE (verdict text, survivor bigint, gone bigint, need_wake boolean)
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE l links; h bytea;
BEGIN
  SELECT * INTO l FROM links WHERE (agent_id = p_agent OR taker_id = p_agent) AND taker_id IS NOT NULL AND until > p_now
    AND (p_hash IS NULL OR hash = p_hash) ORDER BY until DESC LIMIT 1;
  h := l.hash;
  verdict := 'unknown';
  IF h IS NULL THEN RETURN NEXT; RETURN; END IF;
  -- The agents first and in order, as everybody who locks them: two answers at once, and other links of the same people, wait here.
  PERFORM 1 FROM agents WHERE id IN (l.agent_id, l.taker_id) ORDER BY id FOR UPDATE;
  SELECT * INTO l FROM links WHERE hash = h AND until > p_now FOR UPDATE;
  IF NOT FOUND THEN RETURN NEXT; RETURN; END IF;
  IF NOT p_yes THEN
    DELETE FROM links WHERE hash = h;
    verdict := 'declined';
    RETURN NEXT; RETURN;
  END IF;
  UPDATE links SET agreed = agreed OR agent_id = p_agent, taker_agreed = taker_agreed OR taker_id = p_agent WHERE hash = h RETURNING * INTO l;
  verdict := 'waiting';
  IF l.agreed AND l.taker_agreed THEN
    survivor := least(l.agent_id, l.taker_id);
    gone := greatest(l.agent_id, l.taker_id);
    need_wake := merge_agents(survivor, gone, p_now);
    verdict := 'linked';
  END IF;
  RETURN NEXT;
END $$;

-- Tables whose key is the agent alone: one row a person at most.
CREATE FUNCTION one_per_agent() RETURNS SETOF text LANGUAGE sql STABLE AS $$
  SELECT r.relname::text FROM pg_constraint k JOIN pg_class r ON r.oid = k.conrelid JOIN pg_attribute a ON a.attrelid = r.oid AND a.attname = 'agent_id'
  WHERE k.contype = 'p' AND k.conkey = ARRAY[a.attnum] AND r.relnamespace = 'keepsake'::regnamespace
$$;

-- Gives every row of the younger agent to the older one. Both are locked by the caller, in order of their ids. Refusals, pauses and the
-- stricter settings win; nothing crosses between the accounts until the person says so again. Returns whether the older one needs a wake-up.
CREATE FUNCTION merge_agents(p_old bigint, p_young bigint, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE o agents; y agents; t text; running bigint; replied boolean; waiting boolean;
BEGIN
  SELECT * INTO o FROM agents WHERE id = p_old;
  SELECT * INTO y FROM agents WHERE id = p_young;
  IF o.id IS NULL OR y.id IS NULL THEN RAISE EXCEPTION 'merge_agents: % or % is gone', p_old, p_young; END IF;
  IF EXISTS (SELECT 1 FROM conversations a JOIN conversations b USING (place_id) WHERE a.agent_id = p_old AND b.agent_id = p_young) THEN
    RAISE EXCEPTION 'merge_agents: both talk in one place';
  END IF;
  DELETE FROM links WHERE agent_id IN (p_old, p_young) OR taker_id IN (p_old, p_young);
  -- One turn at a time: of two running ones the younger's begins again, or is over if it has spoken already.
  SELECT id, turns.replied INTO running, replied FROM turns WHERE agent_id = p_young AND state = 'running';
  IF running IS NOT NULL AND EXISTS (SELECT 1 FROM turns WHERE agent_id = p_old AND state = 'running') THEN
    UPDATE turns SET state = 'cancelled', finished_at = p_now WHERE id = running;
    IF replied THEN
      UPDATE events SET status = 1, done_at = p_now WHERE turn_id = running AND status = 0;
    ELSE
      DELETE FROM messages WHERE turn_id = running;
      UPDATE events SET turn_id = NULL, attempts = 0 WHERE turn_id = running AND status = 0;
    END IF;
  END IF;
  UPDATE timers SET due_at = NULL WHERE agent_id = p_young AND kind IN ('opener', 'schedule');  -- to be planned again
  UPDATE conversations SET agent_id = p_old WHERE agent_id = p_young;
  UPDATE events SET agent_id = p_old, seq = seq + o.next_seq WHERE agent_id = p_young;
  INSERT INTO spending AS s (agent_id, day, tokens, micros, told) SELECT p_old, day, tokens, micros, told FROM spending WHERE agent_id = p_young
    ON CONFLICT (agent_id, day) DO UPDATE SET tokens = s.tokens + excluded.tokens, micros = s.micros + excluded.micros, told = s.told OR excluded.told;
  DELETE FROM spending WHERE agent_id = p_young;
  INSERT INTO speaking (agent_id) SELECT p_old WHERE EXISTS (SELECT 1 FROM speaking WHERE agent_id = p_young) ON CONFLICT DO NOTHING;
  UPDATE speaking s SET
      openers = CASE WHEN 'no' IN (s.openers, x.openers) THEN 'no' WHEN s.openers = 'yes' AND x.openers = 'yes' THEN 'yes' ELSE least(s.openers, x.openers) END,
      quiet_from = coalesce(s.quiet_from, x.quiet_from), quiet_to = coalesce(s.quiet_to, x.quiet_to), daily_cap = least(s.daily_cap, x.daily_cap),
      crisis_at = greatest(s.crisis_at, x.crisis_at), care_at = greatest(s.care_at, x.care_at), quiet_until = greatest(s.quiet_until, x.quiet_until),
      planned = ''
    FROM speaking x WHERE s.agent_id = p_old AND x.agent_id = p_young;
  -- Nobody asked the other account: its silence is no yes.
  UPDATE speaking SET openers = 'unasked', planned = '' WHERE agent_id = p_old AND openers = 'yes'
    AND NOT EXISTS (SELECT 1 FROM speaking WHERE agent_id = p_young AND openers = 'yes');
  FOR t IN SELECT one_per_agent() LOOP
    EXECUTE format('DELETE FROM %1$I WHERE agent_id = $1 AND EXISTS (SELECT 1 FROM %1$I WHERE agent_id = $2)', t) USING p_young, p_old;
  END LOOP;
  FOR t IN SELECT tables_with(ARRAY['agent_id']) LOOP
    EXECUTE format('UPDATE %I SET agent_id = $2 WHERE agent_id = $1', t) USING p_young, p_old;
  END LOOP;
  UPDATE identities SET merged_into = p_old WHERE merged_into = p_young;
  waiting := EXISTS (SELECT 1 FROM events WHERE agent_id = p_old AND status = 0);
  UPDATE places SET owner_id = p_old, policy_version = policy_version + 1 WHERE owner_id = p_young;
  UPDATE agents SET next_seq = o.next_seq + y.next_seq, epoch = greatest(o.epoch, y.epoch) + 1, version = greatest(o.version, y.version) + 1,
      paused = o.paused OR y.paused, held = o.held OR y.held, cross_accounts = false, timezone = coalesce(o.timezone, y.timezone),
      locale = coalesce(o.locale, y.locale), noticed_at = greatest(o.noticed_at, y.noticed_at),
      wake = o.wake OR waiting
    WHERE id = p_old;
  DELETE FROM agents WHERE id = p_young;
  PERFORM drop_wakes(ARRAY[p_young]);
  RETURN waiting AND NOT o.wake;
END $$;

-- Parts an account from its person again: a new agent gets what came from that platform and realm. Returns it; null: it is the only one there, or not theirs.
CREATE FUNCTION unlink_account(p_agent bigint, p_platform text, p_realm text, p_user text, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE o agents; made bigint; here bigint[]; t text; via text;
BEGIN
  SELECT * INTO o FROM agents WHERE id = p_agent FOR UPDATE;
  IF NOT EXISTS (SELECT 1 FROM identities WHERE agent_id = p_agent AND platform = p_platform AND realm = p_realm AND user_id = p_user)
     OR NOT EXISTS (SELECT 1 FROM identities WHERE agent_id = p_agent AND NOT (platform = p_platform AND realm = p_realm)) THEN
    RETURN NULL;
  END IF;
  INSERT INTO agents (next_seq, epoch, version, paused, held, timezone, locale, noticed_at)
    VALUES (o.next_seq, o.epoch + 1, o.version + 1, o.paused, o.held, o.timezone, o.locale, o.noticed_at) RETURNING id INTO made;
  UPDATE identities SET agent_id = made WHERE agent_id = p_agent AND platform = p_platform AND realm = p_realm;
  here := ARRAY(SELECT id FROM places WHERE platform = p_platform AND realm = p_realm);
  UPDATE conversations SET agent_id = made WHERE agent_id = p_agent AND place_id = ANY (here);
  FOR t IN SELECT tables_with(ARRAY['agent_id', 'place_id']) LOOP
    EXECUTE format('UPDATE %I SET agent_id = $2 WHERE agent_id = $1 AND place_id = ANY ($3)', t) USING p_agent, made, here;
  END LOOP;
  -- What stands under no place goes with the row that it belongs to.
  FOR t, via IN VALUES ('memory_log_content', 'log_id memory_log'), ('usage', 'turn_id turns'), ('fetched', 'turn_id turns'),
      ('sources', 'message_id messages'), ('embeddings', 'message_id messages'), ('embeddings', 'passage_id passages'),
      ('unembedded', 'message_id messages'), ('unembedded', 'passage_id passages') LOOP
    EXECUTE format('UPDATE %I x SET agent_id = $2 FROM %I r WHERE x.agent_id = $1 AND r.id = x.%I AND r.agent_id = $2',
                   t, split_part(via, ' ', 2), split_part(via, ' ', 1)) USING p_agent, made;
  END LOOP;
  -- No row names a row of the other agent.
  DELETE FROM sources s WHERE s.agent_id IN (p_agent, made) AND (
      EXISTS (SELECT 1 FROM messages m WHERE m.id = s.message_id AND m.agent_id <> s.agent_id)
      OR EXISTS (SELECT 1 FROM working_context w WHERE w.id = s.entry_id AND w.agent_id <> s.agent_id)
      OR EXISTS (SELECT 1 FROM passages p WHERE p.id = s.passage_id AND p.agent_id <> s.agent_id));
  DELETE FROM fetched f WHERE f.agent_id IN (p_agent, made) AND (
      EXISTS (SELECT 1 FROM messages m WHERE m.id = f.message_id AND m.agent_id <> f.agent_id)
      OR EXISTS (SELECT 1 FROM passages p WHERE p.id = f.passage_id AND p.agent_id <> f.agent_id));
  INSERT INTO speaking (agent_id, openers, decided_at, quiet_from, quiet_to, daily_cap, crisis_at, care_at)
    SELECT made, openers, decided_at, quiet_from, quiet_to, daily_cap, crisis_at, care_at FROM speaking WHERE agent_id = p_agent;
  UPDATE places SET owner_id = made, policy_version = policy_version + 1 WHERE owner_id = p_agent AND id = ANY (here);
  DELETE FROM links WHERE agent_id = p_agent OR taker_id = p_agent;
  UPDATE agents a SET epoch = o.epoch + 1, version = o.version + 1, wake = EXISTS (SELECT 1 FROM events e WHERE e.agent_id = a.id AND e.status = 0),
      cross_accounts = o.cross_accounts AND (SELECT count(DISTINCT (platform, realm)) FROM identities i WHERE i.agent_id = a.id) > 1
    WHERE a.id IN (p_agent, made);
  RETURN made;
END $$;
