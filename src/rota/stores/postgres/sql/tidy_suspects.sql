-- Forget crashes, and releases of tasks, that are older than `keep` seconds.
-- Reads crashes and parked_tasks, each a small table.
WITH crashes AS (
    DELETE FROM rota.crashes AS c WHERE c.at < coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s)
), released AS (
    DELETE FROM rota.parked_tasks AS p
    WHERE p.released_at < coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s)
)
SELECT 0
