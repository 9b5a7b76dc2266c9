-- The days of finished jobs that are wholly older than `keep` seconds. A day that
-- is half detached comes first, so that a stopped janitor's work is finished: the
-- server detaches no other before.
-- Reads the catalogue; no key.
SELECT child.relname, i.inhdetachpending
FROM pg_inherits AS i
JOIN pg_class AS child ON child.oid = i.inhrelid
WHERE i.inhparent = 'rota.finished_jobs'::regclass
  AND child.relname ~ '^finished_jobs_[0-9]+$'
  AND (i.inhdetachpending
       OR (to_date(substring(child.relname FROM 15), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC'
          <= coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s))
ORDER BY i.inhdetachpending DESC, child.relname
