-- Remove finished jobs past a retention that is shorter than their day lives, in
-- bounded batches. Reads the partitions of the oldest days.
DELETE FROM rota.finished_jobs AS job
WHERE (job.id, job.finished_at) IN (
    SELECT old.id, old.finished_at FROM rota.finished_jobs AS old
    WHERE old.finished_at <= coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s)
    LIMIT %(limit)s)
