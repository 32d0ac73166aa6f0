-- Run after the tables and functions were made.
-- Every function is the bot's alone, with a search path that nobody else can put a name in front of.
DO $$
DECLARE f record;
BEGIN
  FOR f IN SELECT p.oid::regprocedure AS signature, p.prosecdef FROM pg_proc p
           WHERE p.pronamespace = 'keepsake'::regnamespace AND p.prokind = 'f' LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.signature);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO keepsake_bot', f.signature);
    IF f.prosecdef THEN
      EXECUTE format('ALTER FUNCTION %s SET search_path = keepsake, public, pg_temp', f.signature);
    END IF;
  END LOOP;
END $$;
-- By these the bot sees at its start whether the database is its program's.
GRANT SELECT ON alembic_version, functions TO keepsake_bot;
