-- Jobs that run and were claimed since a moment, newest first. There are no more of them than slots.
-- Reads index jobs_running.
SELECT claimed_at, 'started', id, task, queue, tenant, attempt::integer, max_attempts::integer,
       extract(epoch FROM claimed_at - greatest(run_at, created_at))::float8, NULL::float8, NULL::text, NULL::timestamptz
FROM rota.jobs
WHERE state = 'running' AND claimed_at >= %(since)s::timestamptz
  AND (%(task)s::text IS NULL OR task = %(task)s::text)
  AND (%(queue)s::text IS NULL OR queue = %(queue)s::text)
  AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s::text)
ORDER BY claimed_at DESC
LIMIT %(limit)s
