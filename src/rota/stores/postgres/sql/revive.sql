-- Put a dead or cancelled job back on the list from its first attempt, if its
-- version still holds. Its failed attempts stay, and one that killed its process
-- stays a suspect: it runs alone again.
-- Reads the key of dead_jobs and finished_jobs_id.
WITH dead AS (
    DELETE FROM rota.dead_jobs AS job WHERE job.id = %(id)s AND job.version = %(version)s
    RETURNING id, created_at, deadline, version, snoozes, priority, max_attempts, losses, timeout, parent_id, task,
        queue, payload, tenant, subject, external_id, key, unique_key, unique_scope, gate, correlation_id, tags,
        created_by, category, payload_version, headers, error_class, error_message
), cancelled AS (
    DELETE FROM rota.finished_jobs AS job
    WHERE job.id = %(id)s AND job.version = %(version)s AND job.state = 'cancelled'
    RETURNING id, created_at, deadline, version, snoozes, priority, max_attempts, losses, timeout, parent_id, task,
        queue, payload, tenant, subject, external_id, key, unique_key, unique_scope, gate, correlation_id, tags,
        created_by, category, payload_version, headers, error_class, error_message
), back AS (
    INSERT INTO rota.jobs (
        id, created_at, deadline, version, snoozes, priority, max_attempts, losses, timeout, parent_id, task, queue,
        payload, tenant, subject, external_id, key, unique_key, unique_scope, gate, correlation_id, tags, created_by,
        category, payload_version, headers, error_class, error_message, run_at, updated_at, reason)
    SELECT
        id, created_at, NULL, version + 1, 0, priority, max_attempts,
        CASE WHEN error_class = 'crash' THEN 1 ELSE 0 END, timeout, parent_id, task, queue,
        payload, tenant, subject, external_id, key, unique_key, unique_scope, gate, correlation_id, tags, created_by,
        category, payload_version, headers, error_class, error_message, coalesce(%(run_at)s::timestamptz, now()),
        coalesce(%(now)s::timestamptz, now()), %(reason)s
    FROM (SELECT * FROM dead UNION ALL SELECT * FROM cancelled) AS ended
    RETURNING id, queue, priority, gate
)
SELECT back.id, rota.hint(back.queue, back.priority, back.gate IS NOT NULL) FROM back
