-- Who is asking, what may be used here, and the row-level security that every table of personal data gets from it.
-- Run by the owner role; the extensions (vector, pg_trgm, btree_gin, unaccent) are in schema public before it.

GRANT USAGE ON SCHEMA keepsake TO keepsake_bot;

-- The settings of a transaction, made by `enter` and `enter_workspace` ---------------------------------

CREATE FUNCTION current_agent() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT nullif(current_setting('keepsake.agent', true), '')::bigint $$;

CREATE FUNCTION whole_places() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT coalesce(nullif(current_setting('keepsake.whole', true), ''), '{}')::bigint[] $$;

CREATE FUNCTION public_places() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT coalesce(nullif(current_setting('keepsake.public', true), ''), '{}')::bigint[] $$;

CREATE FUNCTION shared_places() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT coalesce(nullif(current_setting('keepsake.shared', true), ''), '{}')::bigint[] $$;

-- Where a row may be written: the current place alone, or every place in the person's own view.
CREATE FUNCTION writable_places() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT coalesce(nullif(current_setting('keepsake.writable', true), ''), '{}')::bigint[] $$;

-- Binds a table of personal data to the agent, and to its places by `scope`: agent (every row of the agent), place (rows of places that
-- are wholly usable) or shared (rule 5, for tables with visibility and shareable: a row written while its place was private stays private,
-- and a place that is private now hides its public rows). Every table of personal data goes through it.
CREATE PROCEDURE protect(t text, scope text) LANGUAGE plpgsql AS $$
DECLARE
  by_agent CONSTANT text := 'agent_id = (SELECT current_agent())';
  of_place CONSTANT text := by_agent || ' AND place_id = ANY ((SELECT whole_places())::bigint[])';
  by_rule5 CONSTANT text := by_agent || ' AND (place_id = ANY ((SELECT whole_places())::bigint[])'
    || ' OR (visibility = ''public'' AND place_id = ANY ((SELECT public_places())::bigint[]))'
    || ' OR (shareable AND place_id = ANY ((SELECT shared_places())::bigint[])))';
  rule CONSTANT text := CASE
    WHEN t = 'agents' THEN 'id = (SELECT current_agent())'
    WHEN t = 'places' THEN '(kind = ''public'' AND id = ANY ((SELECT public_places())::bigint[])) OR id = ANY ((SELECT whole_places())::bigint[]) OR id = ANY ((SELECT shared_places())::bigint[])'
    WHEN scope = 'place' THEN of_place
    WHEN scope = 'shared' THEN by_rule5
    ELSE by_agent
  END;
  written CONSTANT text := CASE
    WHEN t IN ('agents', 'places') THEN rule
    WHEN scope IN ('place', 'shared') THEN by_agent || ' AND place_id = ANY ((SELECT writable_places())::bigint[])'
    ELSE by_agent
  END;
BEGIN
  IF scope NOT IN ('agent', 'place', 'shared') THEN RAISE EXCEPTION 'protect: no scope %', scope; END IF;
  EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
  EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  EXECUTE format('CREATE POLICY %I ON %I TO keepsake_bot USING (%s) WITH CHECK (%s)', t || '_own', t, rule, rule);
  -- What may be read is more than what may be made: a turn makes rows of its own place only.
  EXECUTE format('CREATE POLICY %I ON %I AS RESTRICTIVE FOR INSERT TO keepsake_bot WITH CHECK (%s)', t || '_made', t, written);
  EXECUTE format('CREATE POLICY %I ON %I TO keepsake_owner USING (true) WITH CHECK (true)', t || '_owner', t);
END $$;
REVOKE ALL ON PROCEDURE protect(text, text) FROM PUBLIC;
