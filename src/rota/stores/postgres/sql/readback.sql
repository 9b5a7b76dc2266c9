-- Where jobs stand whose transition did not land, and what was noted of the
-- claim that it belonged to: enough to tell "already" from "fenced".
-- Reads the keys of jobs and dead_jobs, finished_jobs_id, the key of failed_attempts.
SELECT asked.id, found.version, found.state,
       (SELECT noted.error_class FROM rota.failed_attempts AS noted
        WHERE noted.job_id = asked.id AND noted.version = asked.version)
FROM unnest(%(ids)s::uuid[], %(versions)s::integer[]) AS asked (id, version)
LEFT JOIN LATERAL (
    SELECT job.version, job.state FROM rota.jobs AS job WHERE job.id = asked.id
    UNION ALL
    SELECT finished.version, finished.state FROM rota.finished_jobs AS finished WHERE finished.id = asked.id
    UNION ALL
    SELECT dead.version, 'dead' FROM rota.dead_jobs AS dead WHERE dead.id = asked.id
) AS found ON true
