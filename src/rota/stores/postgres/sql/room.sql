-- What the server is, how full it is, who holds vacuum back, and since when minutes wait to be merged.
-- Reads no jobs: catalogs, statistics, migrations (tiny), and the first entry of index minutes_unmerged.
SELECT current_setting('server_version'),
       (SELECT max(version) FROM rota.migrations),
       pg_database_size(current_database()),
       (SELECT count(*)::integer FROM pg_stat_activity WHERE datname = current_database()),
       current_setting('max_connections')::integer,
       oldest.seconds,
       oldest.who,
       (SELECT min(minute) FROM rota.minutes
        WHERE session_id <> '00000000-0000-0000-0000-000000000000')
FROM (SELECT 1) AS always
LEFT JOIN LATERAL (
    SELECT extract(epoch FROM now() - xact_start)::float8 AS seconds,
           coalesce(nullif(application_name, ''), 'an unnamed client') || ', process ' || pid AS who
    FROM pg_stat_activity
    WHERE xact_start IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
    ORDER BY xact_start
    LIMIT 1) AS oldest ON true
