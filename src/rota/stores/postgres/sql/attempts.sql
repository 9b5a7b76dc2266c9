-- The newest attempts of one job that did not succeed, oldest first; all of them without a limit.
-- Reads the key of failed_attempts backwards, no further than the limit.
SELECT job_id, version, attempt, outcome, error_class, error_type, message, stack, session_id, started_at, ended_at
FROM (
    SELECT job_id, version, attempt, outcome, error_class, error_type, message, stack, session_id, started_at, ended_at
    FROM rota.failed_attempts
    WHERE job_id = %(id)s
    ORDER BY version DESC
    LIMIT %(limit)s::bigint
) AS newest
ORDER BY version
