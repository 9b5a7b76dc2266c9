-- The days of finished jobs that are wholly older than `keep` seconds; a day
-- that is being detached is listed too, so that a stopped janitor is finished.
-- Reads the catalogue; no key.
SELECT child.relname, i.inhdetachpending
FROM pg_inherits AS i
JOIN pg_class AS child ON child.oid = i.inhrelid
WHERE i.inhparent = 'rota.finished_jobs'::regclass
  AND child.relname ~ '^finished_jobs_[0-9]+$'
  AND (to_date(substring(child.relname FROM 15), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC'
      <= coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s)
ORDER BY child.relname
