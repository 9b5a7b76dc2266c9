-- Move jobs to the dead, each if its version still holds, with the attempt that
-- killed it in the same commit; their review opens.
-- By key and position as in exchange.sql. Answers the ids that were written.
-- Reads the key of jobs; writes dead_jobs.
WITH given AS (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS g (
        id uuid, version integer, reason text, lost boolean, outcome text, error_class text, error_type text,
        message text, stack text, fingerprint text, frame text)
), gone AS (
    DELETE FROM rota.jobs AS job
    WHERE job.id = ANY (%(ids)s::uuid[])
      AND job.version = (%(versions)s::integer[])[array_position(%(ids)s::uuid[], job.id)]
    RETURNING job.*
), kept AS (
    INSERT INTO rota.dead_jobs (
        id, run_at, created_at, claimed_at, finished_at, deadline, version, snoozes, priority, attempt, max_attempts,
        losses, timeout, session_id, parent_id, task, queue, payload, tenant, subject, external_id, key, unique_key,
        unique_scope, gate, correlation_id, tags, created_by, category, payload_version, headers, error_class,
        error_message, reason, fingerprint, error_type, frame)
    SELECT
        gone.id, run_at, created_at, claimed_at, coalesce(%(now)s::timestamptz, now()), deadline, gone.version + 1,
        snoozes, priority, attempt, max_attempts, losses + CASE WHEN given.lost THEN 1 ELSE 0 END, timeout, session_id,
        parent_id, task, queue, payload, tenant, subject, external_id, key, unique_key, unique_scope, gate,
        correlation_id, tags, created_by, category, payload_version, headers,
        coalesce(given.error_class, gone.error_class), coalesce(given.message, gone.error_message), given.reason,
        given.fingerprint, given.error_type, given.frame
    FROM gone JOIN given ON given.id = gone.id
    RETURNING id
), noted AS (
    INSERT INTO rota.failed_attempts (job_id, version, attempt, outcome, error_class, error_type, message, stack,
        session_id, started_at, ended_at)
    SELECT gone.id, gone.version, gone.attempt, given.outcome, given.error_class, given.error_type, given.message,
        given.stack, gone.session_id, gone.claimed_at, coalesce(%(now)s::timestamptz, now())
    FROM gone JOIN given ON given.id = gone.id
    WHERE given.error_class IS NOT NULL
    ON CONFLICT (job_id, version) DO NOTHING
)
SELECT kept.id FROM kept
