-- Remove failed attempts whose job is gone, in bounded batches.
-- Reads index failed_attempts_ended (ended_at), then the jobs by id.
WITH gone AS (
    DELETE FROM rota.failed_attempts AS noted
    WHERE (noted.job_id, noted.version) IN (
        SELECT old.job_id, old.version FROM rota.failed_attempts AS old
        WHERE old.ended_at <= coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s)
          AND NOT EXISTS (SELECT FROM rota.jobs AS j WHERE j.id = old.job_id)
          AND NOT EXISTS (SELECT FROM rota.dead_jobs AS d WHERE d.id = old.job_id)
          AND NOT EXISTS (SELECT FROM rota.finished_jobs AS f WHERE f.id = old.job_id)
        LIMIT %(limit)s)
    RETURNING noted.job_id
)
SELECT count(*) FROM gone
