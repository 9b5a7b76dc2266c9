-- Store plain jobs (no keys), given as one JSON array, and hint at them.
--
-- One statement for one job or for all that gathered while the last one was
-- under way. A repeated id is left alone: the same enqueue, sent again.
-- Writes through the key of jobs; reads nothing.
WITH stored AS (
    INSERT INTO rota.jobs (
        id, task, payload, queue, priority, max_attempts, run_at, created_at, updated_at, deadline, timeout, tenant,
        subject, external_id, gate, correlation_id, parent_id, tags, created_by, category, payload_version, headers,
        state)
    SELECT
        j.id, j.task, coalesce(j.payload, '{}'), coalesce(j.queue, 'default'), coalesce(j.priority, 100::smallint),
        coalesce(j.max_attempts, 5::smallint),
        coalesce(j.run_at, at.moment + make_interval(secs => coalesce(j.delay, 0))),
        at.moment, at.moment, at.moment + make_interval(secs => j.deadline_in), j.timeout, j.tenant,
        j.subject, j.external_id, j.gate, j.correlation_id, j.parent_id, j.tags, j.created_by, j.category,
        j.payload_version, j.headers, CASE WHEN j.held THEN 'held' ELSE 'pending' END
    FROM jsonb_to_recordset(%(jobs)s::jsonb) AS j (
        id uuid, task text, payload jsonb, queue text, priority smallint, max_attempts smallint, run_at timestamptz,
        delay float8, deadline_in float8, timeout real, tenant text, subject text, external_id text, gate text,
        correlation_id text, parent_id uuid, tags text[], created_by text, category text, payload_version text,
        headers jsonb, held boolean),
        (SELECT coalesce(%(now)s::timestamptz, now()) AS moment) AS at
    ON CONFLICT (id) DO NOTHING
    RETURNING queue, priority, gate IS NOT NULL AS gated, run_at - created_at AS ahead
)
SELECT rota.hint(spot.queue, spot.priority, spot.gated)
FROM (SELECT DISTINCT queue, priority, gated FROM stored WHERE %(hint)s AND ahead <= interval '10 seconds') AS spot
