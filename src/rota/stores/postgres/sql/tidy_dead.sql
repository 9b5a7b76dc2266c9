-- Remove dead jobs whose review closed long enough ago, in bounded batches; one
-- that waits for review stays for ever.
-- Reads index dead_jobs_review (review, finished_at).
WITH gone AS (
    DELETE FROM rota.dead_jobs AS job
    WHERE job.id = ANY (ARRAY (
        SELECT old.id FROM rota.dead_jobs AS old
        WHERE old.review IN ('acknowledged', 'resolved', 'discarded')
          AND coalesce(old.reviewed_at, old.finished_at)
              <= coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s)
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED))
    RETURNING job.id
), history AS (
    DELETE FROM rota.failed_attempts AS noted WHERE noted.job_id IN (SELECT id FROM gone)
)
SELECT count(*) FROM gone
