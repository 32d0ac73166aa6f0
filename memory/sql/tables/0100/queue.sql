-- What the bot may do with Procrastinate's schema, which stands before this, and two settings that keep its fetch fast:
-- fetching is O(blocked rows) without the index, and the plan is bad after a bulk insert without early analysis.

CREATE INDEX keepsake_jobs_lock ON procrastinate.procrastinate_jobs (lock, id) WHERE status IN ('todo', 'doing');
ALTER TABLE procrastinate.procrastinate_jobs SET (autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.01);
ALTER TABLE procrastinate.procrastinate_events SET (autovacuum_vacuum_scale_factor = 0.01);
GRANT USAGE ON SCHEMA procrastinate TO keepsake_bot;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA procrastinate TO keepsake_bot;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA procrastinate TO keepsake_bot;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA procrastinate TO keepsake_bot;
