-- The newest ticks of a schedule, each with what its job is now, wherever that is kept, or how it ended.
-- Reads the key of schedule_ticks backwards, then the jobs' tables by id, and the archive where they have nothing.
SELECT t.tick, t.origin, t.outcome, t.job_id, t.at,
    coalesce(
        (SELECT j.state FROM rota.all_jobs AS j WHERE j.id = t.job_id ORDER BY j.version DESC LIMIT 1),
        (SELECT a.state FROM rota.archived_jobs AS a WHERE a.id = t.job_id AND a.archived_at >= t.at LIMIT 1))
FROM rota.schedule_ticks AS t
WHERE t.schedule = %(schedule)s
ORDER BY t.tick DESC
LIMIT %(limit)s
