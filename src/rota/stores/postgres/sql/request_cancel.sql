-- Ask the worker of a running job to stop it: a flag, so the version stays and
-- the worker's own answer still counts. The hint makes it prompt; beats find it.
-- Reads the key of jobs.
UPDATE rota.jobs AS job
SET cancel_requested_at = coalesce(job.cancel_requested_at, %(now)s::timestamptz, now()),
    reason = coalesce(%(reason)s, job.reason), updated_at = coalesce(%(now)s::timestamptz, now())
WHERE job.id = %(id)s AND job.version = %(version)s AND job.state = 'running'
RETURNING job.id, CASE WHEN pg_notification_queue_usage() < 0.5 THEN pg_notify('rota', 'c:' || job.id) END
