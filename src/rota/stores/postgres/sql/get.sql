-- Jobs by id, whatever table they are in.
-- Reads the keys of jobs and dead_jobs, and finished_jobs_id.
SELECT
    id, version, state, task, queue, priority, payload::text, attempt, max_attempts, snoozes, losses, run_at,
    created_at, updated_at, claimed_at, finished_at, deadline, timeout, cancel_requested_at, session_id, tenant,
    subject, external_id, key, unique_key, unique_scope, gate, parked, correlation_id, parent_id, tags, created_by,
    category, payload_version, headers::text, error_class, error_message, reason, superseded_by, result::text, review
FROM rota.all_jobs
WHERE id = ANY (%(ids)s::uuid[])
