-- Move dead jobs whose review closed long enough ago to the archive, in bounded
-- batches; one that waits for review or is being reprocessed stays for ever.
-- Reads index dead_jobs_review (review, finished_at), the small table retention,
-- dead_jobs_reprocessing and the keys of failed_attempts and job_logs.
WITH due AS MATERIALIZED (
    SELECT job.id
    FROM rota.dead_jobs AS job
    CROSS JOIN LATERAL (
        SELECT CASE WHEN said.keep = 'Infinity' THEN said.keep
                    ELSE greatest(coalesce(%(older_than)s::float8, said.keep, %(keep)s::float8), 60) END AS keep
        FROM (SELECT (
            SELECT coalesce(p.keep, 'Infinity') FROM rota.retention AS p
            WHERE (p.state IS NULL OR p.state = 'dead') AND (p.task IS NULL OR p.task = job.task)
              AND (p.tenant IS NULL OR p.tenant = job.tenant)
            ORDER BY p.weight DESC LIMIT 1) AS keep OFFSET 0) AS said
    ) AS told
    WHERE job.review IN ('acknowledged', 'resolved', 'discarded')
      AND (%(states)s::text[] IS NULL OR 'dead' = ANY (%(states)s::text[]))
      AND (%(task)s::text IS NULL OR job.task = %(task)s::text)
      AND (%(tenant)s::text IS NULL OR job.tenant = %(tenant)s::text)
      AND rota.let_go_at(coalesce(job.reviewed_at, job.finished_at), told.keep, true) <= %(now)s::timestamptz
      AND job.id NOT IN (SELECT unnest(%(bound)s::uuid[]))
      AND job.id NOT IN (SELECT other.reprocessed_as FROM rota.dead_jobs AS other
                         WHERE other.review = 'reprocessing' AND other.reprocessed_as IS NOT NULL)
    LIMIT %(limit)s
    FOR UPDATE OF job SKIP LOCKED
), gone AS (
    DELETE FROM rota.dead_jobs AS job WHERE job.id = ANY (ARRAY (SELECT due.id FROM due))
    RETURNING job.id, job.task, job.queue, job.tenant, job.category, job.subject, job.external_id, job.correlation_id,
        job.parent_id, job.created_by, job.attempt, job.losses, job.created_at, job.run_at, job.claimed_at,
        job.finished_at, job.error_class, job.review, job.reviewed_by
), kept AS (
    INSERT INTO rota.archived_jobs (
        id, state, task, queue, tenant, category, subject, external_id, correlation_id, parent_id, created_by, attempts,
        losses, created_at, finished_at, archived_at, waited, ran, error_class, review, reviewed_by)
    SELECT id, 'dead', task, queue, tenant, category, subject, external_id, correlation_id, parent_id, created_by,
        attempt, losses, created_at, finished_at, %(now)s::timestamptz,
        greatest(extract(epoch FROM claimed_at - greatest(run_at, created_at)), CASE WHEN claimed_at IS NOT NULL THEN 0 END),
        extract(epoch FROM finished_at - claimed_at), error_class, review, reviewed_by
    FROM gone
), history AS (
    DELETE FROM rota.failed_attempts AS noted WHERE noted.job_id IN (SELECT gone.id FROM gone)
), logged AS (
    DELETE FROM rota.job_logs AS line WHERE line.job_id IN (SELECT gone.id FROM gone)
)
SELECT count(*) FROM gone
