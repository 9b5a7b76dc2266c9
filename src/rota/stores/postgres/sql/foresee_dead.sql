-- What prune_dead.sql would move, by policy, and what stays only because
-- unfinished work refers to it.
-- Reads index dead_jobs_review (review, finished_at), the small table retention
-- and dead_jobs_reprocessing.
SELECT told.policy, 'dead', job.bound, count(*), min(job.ended), max(job.ended)
FROM (
    SELECT d.task, d.tenant, coalesce(d.reviewed_at, d.finished_at) AS ended,
           d.id IN (SELECT unnest(%(bound)s::uuid[]))
           OR d.id IN (SELECT other.reprocessed_as FROM rota.dead_jobs AS other
                       WHERE other.review = 'reprocessing' AND other.reprocessed_as IS NOT NULL) AS bound
    FROM rota.dead_jobs AS d
    WHERE d.review IN ('acknowledged', 'resolved', 'discarded')
      AND (%(states)s::text[] IS NULL OR 'dead' = ANY (%(states)s::text[]))
      AND (%(task)s::text IS NULL OR d.task = %(task)s::text)
      AND (%(tenant)s::text IS NULL OR d.tenant = %(tenant)s::text)
) AS job
CROSS JOIN LATERAL (
    SELECT said.id AS policy,
           CASE WHEN said.id IS NOT NULL AND said.keep IS NULL THEN 'Infinity'
                ELSE greatest(coalesce(%(older_than)s::float8, said.keep, %(keep)s::float8), 60) END AS keep
    FROM (VALUES (1)) AS one
    LEFT JOIN LATERAL (
        SELECT p.id, p.keep FROM rota.retention AS p
        WHERE (p.state IS NULL OR p.state = 'dead') AND (p.task IS NULL OR p.task = job.task)
          AND (p.tenant IS NULL OR p.tenant = job.tenant)
        ORDER BY p.weight DESC LIMIT 1) AS said ON true
    OFFSET 0
) AS told
WHERE rota.let_go_at(job.ended, told.keep, true) <= %(now)s::timestamptz
GROUP BY told.policy, job.bound
