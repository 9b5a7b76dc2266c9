-- Put jobs of tasks that are no longer parked back on the list, up to `limit`, and hint at them.
--
-- Reads all waiting jobs, by no index: this is rare, and an index for it would cost every claim.
WITH freed AS (
    UPDATE rota.jobs AS job
    SET parked = NULL, reason = NULL, updated_at = coalesce(%(now)s::timestamptz, now())
    WHERE job.id = ANY (ARRAY (
        SELECT c.id FROM rota.jobs AS c
        WHERE c.state = 'pending' AND c.parked = 'task' AND c.task = ANY (%(tasks)s::text[])
        LIMIT %(limit)s
        FOR UPDATE OF c SKIP LOCKED
    ))
    RETURNING job.queue, job.priority, job.gate
), hinted AS (
    SELECT rota.hint(spot.queue, spot.priority, spot.gated)
    FROM (SELECT DISTINCT queue, priority, gate IS NOT NULL AS gated FROM freed) AS spot
)
SELECT (SELECT count(*) FROM freed), (SELECT count(*) FROM hinted)
