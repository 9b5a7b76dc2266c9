-- Give the next day of finished jobs that is over the indexes that a day being filled does without; how many had none.
-- Reads the catalogue: pg_inherits by finished_jobs.
SELECT rota.index_days(coalesce(%(now)s::timestamptz, now()))
