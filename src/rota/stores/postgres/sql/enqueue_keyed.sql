-- Store jobs that have keys: the function holds the rules, for SQL callers too.
-- Reads the key of keys, then jobs, finished_jobs and dead_jobs by id.
SELECT "position", id, stored FROM rota.enqueue_jobs(%(jobs)s::jsonb, %(now)s::timestamptz)
