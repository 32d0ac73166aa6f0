-- The schema keepsake in rows (what, how) that are equal for equal schemas, whatever the order in which they came about. Of the functions those
-- named in the parameter, by their text (the settings of SECURITY DEFINER ones come from grants.sql).
WITH tables AS (
  SELECT c.* FROM pg_class c WHERE c.relnamespace = 'keepsake'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname NOT IN ('alembic_version', 'functions')
)
SELECT 'table ' || t.relname, concat_ws(' ', 'row security', t.relrowsecurity, 'forced', t.relforcerowsecurity) FROM tables t
UNION ALL
SELECT 'column ' || t.relname || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'not null' END,
    nullif('identity ' || a.attidentity::text, 'identity '), nullif('generated ' || a.attgenerated::text, 'generated '), pg_get_expr(d.adbin, d.adrelid))
  FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
UNION ALL
SELECT 'constraint ' || t.relname || '.' || k.conname, pg_get_constraintdef(k.oid) FROM tables t JOIN pg_constraint k ON k.conrelid = t.oid
UNION ALL
SELECT 'index ' || i.relname, pg_get_indexdef(i.oid) FROM tables t JOIN pg_index x ON x.indrelid = t.oid JOIN pg_class i ON i.oid = x.indexrelid
UNION ALL
SELECT 'policy ' || p.tablename || '.' || p.policyname, concat_ws(' | ', p.permissive, p.cmd, p.roles::text, p.qual, p.with_check)
  FROM pg_policies p WHERE p.schemaname = 'keepsake'
UNION ALL
SELECT 'trigger ' || t.relname || '.' || g.tgname, pg_get_triggerdef(g.oid) FROM tables t JOIN pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal
UNION ALL
SELECT 'function ' || p.oid::regprocedure, concat_ws(' | ', p.provolatile, p.prosecdef, p.proisstrict, p.prorettype::regtype,
    CASE WHEN NOT p.prosecdef THEN p.proconfig::text END, p.prosrc)
  FROM pg_proc p WHERE p.pronamespace = 'keepsake'::regnamespace AND p.proname = ANY (%s)
UNION ALL
SELECT 'grant on ' || t.relname, string_agg(DISTINCT g.privilege_type, ', ' ORDER BY g.privilege_type)
  FROM tables t, aclexplode(t.relacl) g WHERE g.grantee = 'keepsake_bot'::regrole GROUP BY t.relname
UNION ALL
SELECT 'grant on ' || t.relname || '.' || a.attname, string_agg(DISTINCT g.privilege_type, ', ' ORDER BY g.privilege_type)
  FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid AND NOT a.attisdropped, aclexplode(a.attacl) g
  WHERE g.grantee = 'keepsake_bot'::regrole GROUP BY t.relname, a.attname
ORDER BY 1, 2
