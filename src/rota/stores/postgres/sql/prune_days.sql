-- The days in which a finished job may be past its time, oldest first, with their
-- size in blocks. A day that was gone through is passed over until something in
-- it is due, unless every day is asked for. It is over ten minutes after midnight:
-- until then somebody may still settle into it. One that is dropped meanwhile has no size.
-- Reads the catalogue, the key of retention_days and the small table retention.
WITH known AS (
    SELECT child.oid, child.relname, to_date(substring(child.relname FROM 15), 'YYYYMMDD') AS day
    FROM pg_inherits AS i
    JOIN pg_class AS child ON child.oid = i.inhrelid
    WHERE i.inhparent = 'rota.finished_jobs'::regclass AND NOT i.inhdetachpending
      AND child.relname ~ '^finished_jobs_[0-9]+$'
)
SELECT known.relname, known.day,
       (known.day + 1)::timestamp AT TIME ZONE 'UTC' <= %(now)s::timestamptz - interval '10 minutes',
       coalesce(ceil(pg_relation_size(known.oid) / current_setting('block_size')::float8)::integer, 0)
FROM known
LEFT JOIN rota.retention_days AS looked ON looked.day = known.day
WHERE known.day::timestamp AT TIME ZONE 'UTC' <= %(now)s::timestamptz - make_interval(secs => %(least)s)
  AND (%(every)s OR looked.day IS NULL OR looked.next_due <= %(now)s OR looked.rules <> rota.retention_rules(%(keep)s))
ORDER BY known.day
