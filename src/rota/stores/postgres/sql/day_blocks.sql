-- The store's time, and how many blocks the table of finished jobs of each day since a moment has, newest first; a
-- day without a table has none. At least one row.
-- Reads no rows: the sizes of partitions.
SELECT moment, day AT TIME ZONE 'UTC',
       coalesce(pg_relation_size(to_regclass('rota.finished_jobs_' || to_char(day, 'YYYYMMDD')))
                    / current_setting('block_size')::integer, 0)
FROM coalesce(%(now)s::timestamptz, now()) AS moment,
     generate_series(date_trunc('day', moment AT TIME ZONE 'UTC'),
                     date_trunc('day', least(%(since)s::timestamptz, moment) AT TIME ZONE 'UTC'),
                     interval '-1 day') AS day
ORDER BY day DESC
