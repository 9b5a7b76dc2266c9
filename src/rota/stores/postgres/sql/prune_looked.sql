-- Note when the first of the jobs that are left in a day is due, so that the day
-- is left alone until then.
-- Reads the partition whole, once after each time it was gone through.
INSERT INTO rota.retention_days AS looked (day, next_due, rules)
SELECT %(day)s::date, coalesce(min(rota.let_go_at(job.finished_at, told.keep, false)), 'infinity'),
       rota.retention_rules(%(keep)s)
FROM rota.{day} AS job
CROSS JOIN LATERAL (
    SELECT CASE WHEN said.keep = 'Infinity' THEN said.keep
                ELSE greatest(coalesce(said.keep, %(keep)s::float8), 60) END AS keep
    FROM (SELECT (
        SELECT coalesce(p.keep, 'Infinity') FROM rota.retention AS p
        WHERE (p.state IS NULL OR p.state = job.state) AND (p.task IS NULL OR p.task = job.task)
          AND (p.tenant IS NULL OR p.tenant = job.tenant)
        ORDER BY p.weight DESC LIMIT 1) AS keep OFFSET 0) AS said
) AS told
ON CONFLICT (day) DO UPDATE SET next_due = excluded.next_due, rules = excluded.rules
