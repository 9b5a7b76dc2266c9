-- When a handler's own transaction ends: now() is when it began, maybe long ago. And whether that day has a table.
-- Reads the catalogue only; no index of ours.
SELECT moment, to_regclass('rota.finished_jobs_' || to_char(moment AT TIME ZONE 'UTC', 'YYYYMMDD')) IS NOT NULL
FROM coalesce(%(now)s::timestamptz, clock_timestamp()) AS moment
