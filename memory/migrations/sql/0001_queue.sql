-- What the bot may do with Procrastinate's schema, and two settings that keep its fetch fast:
-- fetching is O(blocked rows) without the index, and the plan is bad after a bulk insert without early analysis.
CREATE INDEX keepsake_jobs_lock ON procrastinate.procrastinate_jobs (lock, id) WHERE status IN ('todo', 'doing');
ALTER TABLE procrastinate.procrastinate_jobs SET (autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.01);
ALTER TABLE procrastinate.procrastinate_events SET (autovacuum_vacuum_scale_factor = 0.01);
GRANT USAGE ON SCHEMA procrastinate TO keepsake_bot;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA procrastinate TO keepsake_bot;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA procrastinate TO keepsake_bot;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA procrastinate TO keepsake_bot;
GRANT SELECT ON keepsake.alembic_version TO keepsake_bot;

-- Puts an agent's wake-up into the queue, to be seen when the caller's transaction commits. Procrastinate's own function, called here so that
-- taking an event in is one round trip. The caller keeps the invariant: the wake flag is up exactly while one job waits or runs.
CREATE FUNCTION keepsake.defer_wake(p_agent bigint) RETURNS bigint LANGUAGE sql SET search_path = procrastinate, public, pg_temp AS $$
  SELECT unnest(procrastinate_defer_jobs_v1(ARRAY[
    ROW('default', 'wake', 0, 'agent:' || p_agent, NULL, jsonb_build_object('agent', p_agent), NULL)::procrastinate_job_to_defer_v1]))
$$;
