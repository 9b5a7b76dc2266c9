-- Store jobs on a connection of the caller's (tx=), in the caller's transaction.
--
-- The function holds all rules, for keys too, and answers what others raise:
-- the caller's transaction is never aborted by a duplicate. The values are sent
-- as text, which every driver has; CAST instead of two colons, which SQLAlchemy
-- would read as a parameter.
-- Reads the key of keys, then jobs, finished_jobs and dead_jobs by id.
SELECT "position", id, stored
FROM rota.enqueue_jobs(CAST(CAST(%(jobs)s AS text) AS jsonb), CAST(CAST(%(now)s AS text) AS timestamptz))
