-- The attempts of one job that did not succeed, oldest first.
-- Reads the key of failed_attempts.
SELECT job_id, version, attempt, outcome, error_class, error_type, message, stack, session_id, started_at, ended_at
FROM rota.failed_attempts
WHERE job_id = %(id)s
ORDER BY version
