-- The truth about parked jobs: those at a gate that nobody is in go back on the
-- list, one more a gate each time, because the first may be for a queue that
-- nobody serves. Finds what a crash between settle and ungate left behind.
-- Reads indexes jobs_at_gate (gate, priority, run_at, id) and jobs_in_gate (gate).
WITH RECURSIVE gate AS (
    (SELECT c.gate FROM rota.jobs AS c WHERE c.state = 'pending' AND c.parked = 'gate' ORDER BY c.gate LIMIT 1)
    UNION ALL
    SELECT step.gate FROM gate, LATERAL (
        SELECT c.gate FROM rota.jobs AS c
        WHERE c.state = 'pending' AND c.parked = 'gate' AND c.gate > gate.gate ORDER BY c.gate LIMIT 1) AS step
), freed AS (
    UPDATE rota.jobs AS job
    SET parked = NULL, updated_at = coalesce(%(now)s::timestamptz, now())
    WHERE job.id = ANY (ARRAY (
        SELECT head.id FROM gate, LATERAL (
            SELECT c.id FROM rota.jobs AS c
            WHERE c.state = 'pending' AND c.gate = gate.gate AND c.parked = 'gate'
            ORDER BY c.priority, c.run_at, c.id LIMIT 1
            FOR UPDATE OF c SKIP LOCKED) AS head
        WHERE NOT EXISTS (SELECT FROM rota.jobs AS inside WHERE inside.state = 'running' AND inside.gate = gate.gate)
    ))
    RETURNING job.queue, job.priority
), hinted AS (
    SELECT rota.hint(spot.queue, spot.priority, true) FROM (SELECT DISTINCT queue, priority FROM freed) AS spot
)
SELECT (SELECT count(*) FROM freed), (SELECT count(*) FROM hinted)
