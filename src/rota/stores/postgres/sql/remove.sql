-- Remove a job that is not running, with its failed attempts, if its version
-- still holds.
-- Reads the keys of jobs and dead_jobs, and finished_jobs_id.
WITH waiting AS (
    DELETE FROM rota.jobs AS job
    WHERE job.id = %(id)s AND job.version = %(version)s AND job.state <> 'running' RETURNING id
), dead AS (
    DELETE FROM rota.dead_jobs AS job WHERE job.id = %(id)s AND job.version = %(version)s RETURNING id
), finished AS (
    DELETE FROM rota.finished_jobs AS job WHERE job.id = %(id)s AND job.version = %(version)s RETURNING id
), gone AS (
    SELECT id FROM waiting UNION ALL SELECT id FROM dead UNION ALL SELECT id FROM finished
), history AS (
    DELETE FROM rota.failed_attempts AS noted WHERE noted.job_id IN (SELECT id FROM gone)
)
SELECT id FROM gone
