-- Running jobs whose session has ended or is missing, up to `limit`.
--
-- Only a session already marked ended counts: expiry is decided once, in
-- end_expired.sql. Whoever settles one of these is fenced like everybody.
-- Reads index jobs_running (session_id) and the key of sessions.
SELECT
    job.id, job.version, job.task, job.queue, job.priority, job.payload::text, job.attempt, job.max_attempts,
    job.snoozes, job.losses, job.run_at, job.created_at, job.claimed_at, job.deadline, job.timeout, job.tenant,
    job.subject, job.external_id, job.key, job.unique_key, job.unique_scope, job.gate, job.correlation_id,
    job.parent_id, job.tags, job.created_by, job.category, job.payload_version, job.headers::text, job.error_class,
    job.error_message, job.cancel_requested_at, job.session_id, job.reason
FROM rota.jobs AS job
WHERE job.state = 'running'
  AND NOT EXISTS (SELECT FROM rota.sessions AS s WHERE s.id = job.session_id AND s.ended_at IS NULL)
LIMIT %(limit)s
