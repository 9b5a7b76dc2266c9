-- Where a waiting job stands: how many due jobs of its queue a claim takes before
-- it, counted up to `cap`, and which running job is inside its gate.
--
-- The priorities of the queue are found by a loose scan, and each is read by
-- equality up to now: rows that are due later are never walked over, and no
-- more than `cap` of the others, however long the backlog is.
-- Reads indexes jobs_due and jobs_gated (queue, priority, run_at, id) and jobs_in_gate (gate).
WITH RECURSIVE plain AS (
    (SELECT priority FROM rota.jobs
     WHERE state = 'pending' AND gate IS NULL AND parked IS NULL AND queue = %(queue)s
     ORDER BY priority, run_at, id LIMIT 1)
    UNION ALL
    SELECT step.priority FROM plain, LATERAL (
        SELECT priority FROM rota.jobs
        WHERE state = 'pending' AND gate IS NULL AND parked IS NULL AND queue = %(queue)s
          AND priority > plain.priority AND priority <= %(priority)s
        ORDER BY priority, run_at, id LIMIT 1) AS step
), gated AS (
    (SELECT priority FROM rota.jobs
     WHERE state = 'pending' AND gate IS NOT NULL AND parked IS NULL AND queue = %(queue)s
     ORDER BY priority, run_at, id LIMIT 1)
    UNION ALL
    SELECT step.priority FROM gated, LATERAL (
        SELECT priority FROM rota.jobs
        WHERE state = 'pending' AND gate IS NOT NULL AND parked IS NULL AND queue = %(queue)s
          AND priority > gated.priority AND priority <= %(priority)s
        ORDER BY priority, run_at, id LIMIT 1) AS step
), pair AS (
    -- How far each priority is read: to now, and our own only to our own place.
    SELECT spot.priority, spot.is_gated,
           CASE WHEN spot.whole THEN coalesce(%(now)s::timestamptz, now()) ELSE %(run_at)s::timestamptz END AS upto,
           CASE WHEN spot.whole THEN 'ffffffff-ffff-ffff-ffff-ffffffffffff' ELSE %(id)s::uuid END AS upto_id
    FROM (
        SELECT known.priority, known.is_gated,
               known.priority < %(priority)s OR %(run_at)s::timestamptz > coalesce(%(now)s::timestamptz, now()) AS whole
        FROM (SELECT priority, false AS is_gated FROM plain UNION ALL SELECT priority, true FROM gated) AS known
        WHERE known.priority <= %(priority)s
    ) AS spot
), due AS (
    SELECT true FROM pair, LATERAL (
        SELECT FROM rota.jobs AS j
        WHERE j.state = 'pending' AND j.gate IS NULL AND j.parked IS NULL AND j.queue = %(queue)s
          AND j.priority = pair.priority AND (j.run_at, j.id) < (pair.upto, pair.upto_id)
        ORDER BY j.run_at, j.id
        LIMIT %(cap)s) AS before
    WHERE NOT pair.is_gated
    UNION ALL
    SELECT true FROM pair, LATERAL (
        SELECT FROM rota.jobs AS j
        WHERE j.state = 'pending' AND j.gate IS NOT NULL AND j.parked IS NULL AND j.queue = %(queue)s
          AND j.priority = pair.priority AND (j.run_at, j.id) < (pair.upto, pair.upto_id)
        ORDER BY j.run_at, j.id
        LIMIT %(cap)s) AS before
    WHERE pair.is_gated
)
SELECT (SELECT count(*) FROM (SELECT FROM due LIMIT %(cap)s) AS counted),
       (SELECT j.id FROM rota.jobs AS j
        WHERE j.state = 'running' AND j.gate = %(gate)s AND j.id <> %(id)s::uuid LIMIT 1)
