-- The (queue, priority) pairs that have waiting jobs, each with the seconds
-- until its first one is due, and that one's place; gated jobs as pairs of their own.
--
-- A loose index scan: one probe a pair, however long the backlog is.
-- Reads indexes jobs_due and jobs_gated (queue, priority, run_at, id).
WITH RECURSIVE plain AS (
    (SELECT queue, priority, run_at, id FROM rota.jobs
     WHERE state = 'pending' AND gate IS NULL AND parked IS NULL
     ORDER BY queue, priority, run_at, id LIMIT 1)
    UNION ALL
    SELECT step.queue, step.priority, step.run_at, step.id
    FROM plain, LATERAL (
        SELECT queue, priority, run_at, id FROM rota.jobs
        WHERE state = 'pending' AND gate IS NULL AND parked IS NULL
          AND (queue, priority) > (plain.queue, plain.priority)
        ORDER BY queue, priority, run_at, id LIMIT 1) AS step
), gated AS (
    (SELECT queue, priority, run_at, id FROM rota.jobs
     WHERE state = 'pending' AND gate IS NOT NULL AND parked IS NULL
     ORDER BY queue, priority, run_at, id LIMIT 1)
    UNION ALL
    SELECT step.queue, step.priority, step.run_at, step.id
    FROM gated, LATERAL (
        SELECT queue, priority, run_at, id FROM rota.jobs
        WHERE state = 'pending' AND gate IS NOT NULL AND parked IS NULL
          AND (queue, priority) > (gated.queue, gated.priority)
        ORDER BY queue, priority, run_at, id LIMIT 1) AS step
)
SELECT queue, priority, extract(epoch FROM run_at - coalesce(%(now)s::timestamptz, now()))::float8, false, run_at, id
FROM plain
UNION ALL
SELECT queue, priority, extract(epoch FROM run_at - coalesce(%(now)s::timestamptz, now()))::float8, true, run_at, id
FROM gated
