-- The dead jobs whose work is being done again, each with the state of its new
-- job (none: it is gone) and where the review of that one stands.
-- Reads index dead_jobs_reprocessing; the new jobs by the keys of jobs and
-- dead_jobs, and finished_jobs_id.
SELECT dead.id, dead.version, coalesce(dead.correlation_id, dead.id::text), dead.reprocessed_as, found.state,
       found.version, coalesce(found.correlation_id, dead.reprocessed_as::text), found.review
FROM rota.dead_jobs AS dead
LEFT JOIN LATERAL (
    SELECT job.state, job.version, job.correlation_id, NULL::text AS review FROM rota.jobs AS job
    WHERE job.id = dead.reprocessed_as
    UNION ALL
    SELECT job.state, job.version, job.correlation_id, NULL FROM rota.finished_jobs AS job
    WHERE job.id = dead.reprocessed_as
    UNION ALL
    SELECT 'dead', job.version, job.correlation_id, job.review FROM rota.dead_jobs AS job
    WHERE job.id = dead.reprocessed_as
) AS found ON true
WHERE dead.review = 'reprocessing'
LIMIT %(limit)s
