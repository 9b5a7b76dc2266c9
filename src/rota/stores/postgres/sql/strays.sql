-- Running jobs of a session that it does not hold: the answer to their claim
-- was lost. Only those claimed some seconds ago, so that an answer still on its
-- way is not taken for lost.
-- Reads index jobs_running (session_id).
SELECT
    job.id, job.version, job.task, job.queue, job.priority, job.payload::text, job.attempt, job.max_attempts,
    job.snoozes, job.losses, job.run_at, job.created_at, job.claimed_at, job.deadline, job.timeout, job.tenant,
    job.subject, job.external_id, job.key, job.unique_key, job.unique_scope, job.gate, job.correlation_id,
    job.parent_id, job.tags, job.created_by, job.category, job.payload_version, job.headers::text, job.error_class,
    job.error_message, job.cancel_requested_at
FROM rota.jobs AS job
WHERE job.state = 'running' AND job.session_id = %(session)s AND NOT job.id = ANY (%(ids)s::uuid[])
  AND job.claimed_at < coalesce(%(now)s::timestamptz, now()) - interval '3 seconds'
