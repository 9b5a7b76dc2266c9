-- Dead jobs without a fingerprint, each with its last failed attempt: they died
-- under code that knew of none.
-- Reads index dead_jobs_unnamed and the key of failed_attempts.
SELECT dead.id, dead.task, coalesce(last.error_type, dead.error_class, 'unknown'),
       coalesce(last.message, dead.error_message, ''), last.stack
FROM rota.dead_jobs AS dead
LEFT JOIN LATERAL (
    SELECT noted.error_type, noted.message, noted.stack FROM rota.failed_attempts AS noted
    WHERE noted.job_id = dead.id ORDER BY noted.version DESC LIMIT 1
) AS last ON true
WHERE dead.fingerprint IS NULL
LIMIT %(limit)s
