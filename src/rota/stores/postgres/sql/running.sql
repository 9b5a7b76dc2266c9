-- The jobs that run now, the longest first, without their payloads. There are no more of them than slots.
-- Reads index jobs_running.
SELECT id, task, queue, tenant, attempt, max_attempts, claimed_at, session_id, timeout,
       cancel_requested_at IS NOT NULL
FROM rota.jobs
WHERE state = 'running' AND claimed_at IS NOT NULL
ORDER BY claimed_at, id
LIMIT %(limit)s
