-- Remove logs whose job is gone, in bounded batches.
-- Reads index job_logs_updated (updated_at), then the jobs by id.
WITH gone AS (
    DELETE FROM rota.job_logs AS kept
    WHERE (kept.job_id, kept.version) IN (
        SELECT old.job_id, old.version FROM rota.job_logs AS old
        WHERE old.updated_at <= coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s)
          AND NOT EXISTS (SELECT FROM rota.jobs AS j WHERE j.id = old.job_id)
          AND NOT EXISTS (SELECT FROM rota.dead_jobs AS d WHERE d.id = old.job_id)
          AND NOT EXISTS (SELECT FROM rota.finished_jobs AS f WHERE f.id = old.job_id)
        LIMIT %(limit)s)
    RETURNING kept.job_id
)
SELECT count(*) FROM gone
