-- The queues that have waiting jobs, each with when its oldest one is or was due.
--
-- A loose index scan as in pairs.sql: one probe a queue and priority, however long the backlog is.
-- Reads indexes jobs_due and jobs_gated (queue, priority, run_at, id).
WITH RECURSIVE plain AS (
    (SELECT queue, priority, run_at FROM rota.jobs
     WHERE state = 'pending' AND gate IS NULL AND parked IS NULL
     ORDER BY queue, priority, run_at, id LIMIT 1)
    UNION ALL
    SELECT step.queue, step.priority, step.run_at
    FROM plain, LATERAL (
        SELECT queue, priority, run_at FROM rota.jobs
        WHERE state = 'pending' AND gate IS NULL AND parked IS NULL
          AND (queue, priority) > (plain.queue, plain.priority)
        ORDER BY queue, priority, run_at, id LIMIT 1) AS step
), gated AS (
    (SELECT queue, priority, run_at FROM rota.jobs
     WHERE state = 'pending' AND gate IS NOT NULL AND parked IS NULL
     ORDER BY queue, priority, run_at, id LIMIT 1)
    UNION ALL
    SELECT step.queue, step.priority, step.run_at
    FROM gated, LATERAL (
        SELECT queue, priority, run_at FROM rota.jobs
        WHERE state = 'pending' AND gate IS NOT NULL AND parked IS NULL
          AND (queue, priority) > (gated.queue, gated.priority)
        ORDER BY queue, priority, run_at, id LIMIT 1) AS step
)
SELECT queue, min(run_at) FROM (SELECT * FROM plain UNION ALL SELECT * FROM gated) AS front
GROUP BY queue ORDER BY queue COLLATE "C"
