-- Which database a connection leads to, and whether jobs can be stored there.
--
-- Asked once for each address that is given as tx=. It reads the catalogue only
-- and nothing that a role may be denied, so it cannot fail and abort the
-- caller's transaction. The identifier of the system tells servers apart whose
-- databases have the same name; a pooler or a second address does not change it.
-- Reads the catalogue by name: the keys of pg_database, pg_namespace, pg_proc and pg_class.
SELECT CAST(current_database() AS text) AS name,
       CAST(current_user AS text) AS role,
       CAST((SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database()) AS text)
           || '@' || CAST((SELECT c.system_identifier FROM pg_catalog.pg_control_system() AS c) AS text) AS identity,
       has_function_privilege('public', 'pg_catalog.pg_control_system()', 'execute') AS may_be_asked,
       EXISTS (SELECT FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
               WHERE n.nspname = 'rota' AND p.proname = 'enqueue_jobs') AS has_schema,
       coalesce((SELECT has_schema_privilege(n.oid, 'usage') AND has_table_privilege(c.oid, 'insert')
                 FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
                 WHERE n.nspname = 'rota' AND c.relname = 'jobs'), false) AS may_store
