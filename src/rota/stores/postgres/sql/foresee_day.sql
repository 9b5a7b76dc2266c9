-- What prune_day.sql would move of a day, by policy and state, and what stays
-- only because unfinished work refers to it.
-- Reads the partition whole, the small table retention and dead_jobs_reprocessing.
SELECT told.policy, job.state, job.bound, count(*), min(job.finished_at), max(job.finished_at)
FROM (
    SELECT f.state, f.task, f.tenant, f.finished_at,
           f.id IN (SELECT unnest(%(bound)s::uuid[]))
           OR f.id IN (SELECT dead.reprocessed_as FROM rota.dead_jobs AS dead
                       WHERE dead.review = 'reprocessing' AND dead.reprocessed_as IS NOT NULL) AS bound
    FROM rota.{day} AS f
    WHERE (%(states)s::text[] IS NULL OR f.state = ANY (%(states)s::text[]))
      AND (%(task)s::text IS NULL OR f.task = %(task)s::text)
      AND (%(tenant)s::text IS NULL OR f.tenant = %(tenant)s::text)
) AS job
CROSS JOIN LATERAL (
    SELECT said.id AS policy,
           CASE WHEN said.id IS NOT NULL AND said.keep IS NULL THEN 'Infinity'
                ELSE greatest(coalesce(%(older_than)s::float8, said.keep, %(keep)s::float8), 60) END AS keep
    FROM (VALUES (1)) AS one
    LEFT JOIN LATERAL (
        SELECT p.id, p.keep FROM rota.retention AS p
        WHERE (p.state IS NULL OR p.state = job.state) AND (p.task IS NULL OR p.task = job.task)
          AND (p.tenant IS NULL OR p.tenant = job.tenant)
        ORDER BY p.weight DESC LIMIT 1) AS said ON true
    OFFSET 0
) AS told
WHERE rota.let_go_at(job.finished_at, told.keep, %(older_than)s::float8 IS NOT NULL) <= %(now)s::timestamptz
GROUP BY told.policy, job.state, job.bound
