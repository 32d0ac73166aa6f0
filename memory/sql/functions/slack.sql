-- Installations of the Slack app: secrets of workspaces, one at a time.

CREATE FUNCTION slack_install(p_enterprise text, p_team text, p_secret text) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  INSERT INTO slack_installations VALUES (p_enterprise, p_team, p_secret)
  ON CONFLICT (enterprise_id, team_id) DO UPDATE SET secret = excluded.secret
$$;

CREATE FUNCTION slack_installed(p_enterprise text, p_team text) RETURNS text LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT secret FROM slack_installations WHERE enterprise_id = p_enterprise AND team_id = p_team
$$;

CREATE FUNCTION slack_uninstall(p_enterprise text, p_team text) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  DELETE FROM slack_installations WHERE enterprise_id = p_enterprise AND team_id = p_team
$$;

CREATE FUNCTION slack_begin(p_state bytea, p_until timestamptz) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  INSERT INTO slack_states VALUES (p_state, p_until)
$$;

-- True once, and in time; what is over goes along.
CREATE FUNCTION slack_begun(p_state bytea, p_now timestamptz) RETURNS boolean LANGUAGE sql SECURITY DEFINER AS $$
  WITH taken AS (DELETE FROM slack_states WHERE state = p_state OR valid_until <= p_now RETURNING state, valid_until)
  SELECT EXISTS (SELECT 1 FROM taken WHERE state = p_state AND valid_until > p_now)
$$;
