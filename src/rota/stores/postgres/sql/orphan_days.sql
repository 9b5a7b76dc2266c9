-- Days that were detached but not dropped, because a janitor was stopped between.
-- Reads the catalogue; no key.
SELECT child.relname
FROM pg_class AS child
WHERE child.relnamespace = 'rota'::regnamespace AND child.relkind = 'r' AND NOT child.relispartition
  AND child.relname ~ '^finished_jobs_[0-9]+$'
  AND (to_date(substring(child.relname FROM 15), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC'
      <= coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s)
