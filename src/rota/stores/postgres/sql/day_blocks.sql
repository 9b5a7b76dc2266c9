-- The store's time, and how many blocks the table of finished jobs of that day and of another one have; none: NULL.
-- Reads no rows: the sizes of two partitions.
SELECT moment, pg_relation_size(to_regclass('rota.finished_jobs_' || to_char(moment AT TIME ZONE 'UTC', 'YYYYMMDD')))
                   / current_setting('block_size')::integer,
       pg_relation_size(to_regclass('rota.finished_jobs_' || to_char(%(since)s::timestamptz AT TIME ZONE 'UTC', 'YYYYMMDD')))
                   / current_setting('block_size')::integer
FROM coalesce(%(now)s::timestamptz, now()) AS moment
