-- What one session runs now, the newest first. There are no more of them than its slots.
-- Reads index jobs_running.
SELECT id, task, queue, tenant, attempt::integer, claimed_at, NULL::timestamptz, 'running'
FROM rota.jobs
WHERE state = 'running' AND session_id = %(session)s::uuid AND claimed_at IS NOT NULL
ORDER BY claimed_at DESC
LIMIT %(limit)s
