-- The gates have been left: put the next parked job of each back on the list,
-- and hint at it.
--
-- Only the first in line, and only while nobody is inside: the rest stay parked,
-- out of the claim index.
-- Reads indexes jobs_at_gate (gate, priority, run_at, id) and jobs_in_gate (gate).
WITH freed AS (
    UPDATE rota.jobs AS job
    SET parked = NULL, updated_at = coalesce(%(now)s::timestamptz, now())
    WHERE job.id = ANY (ARRAY (
        SELECT head.id
        FROM (SELECT DISTINCT unnest(%(gates)s::text[]) AS gate) AS gates,
             LATERAL (
                 SELECT c.id FROM rota.jobs AS c
                 WHERE c.state = 'pending' AND c.gate = gates.gate AND c.parked = 'gate'
                 ORDER BY c.priority, c.run_at, c.id
                 LIMIT 1
                 FOR UPDATE OF c SKIP LOCKED
             ) AS head
        WHERE NOT EXISTS (SELECT FROM rota.jobs AS inside WHERE inside.state = 'running' AND inside.gate = gates.gate)
    ))
    RETURNING job.queue, job.priority
)
SELECT rota.hint(spot.queue, spot.priority, true) FROM (SELECT DISTINCT queue, priority FROM freed) AS spot
