-- Empty every table of Rota's, for a database that belongs to tests; what says which migrations ran stays.
--
-- One statement for all, so that nobody sees half of it; the days of finished
-- jobs are emptied with their parent. Reads the catalogue only; no key.
DO $$
BEGIN
    -- The audit keeps its rows from everybody else.
    PERFORM set_config('rota.removing_audit', 'on', true);
    EXECUTE (
        SELECT 'TRUNCATE ' || string_agg(quote_ident(schemaname) || '.' || quote_ident(tablename), ', ')
        FROM pg_tables
        WHERE schemaname = 'rota' AND tablename <> 'migrations'
    );
END
$$;
