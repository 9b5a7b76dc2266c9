-- What people did to jobs since a moment, newest first. At most ten times the limit is looked at before the filter.
-- Reads index audit_at, then the jobs by their keys.
SELECT a.at, 'acted', a.job_id, j.task, j.queue, j.tenant, NULL::integer, NULL::integer, NULL::float8, NULL::float8,
       a.action || ' by ' || a.actor || coalesce(': ' || nullif(a.reason, ''), ''), NULL::timestamptz
FROM (SELECT * FROM rota.audit
      WHERE at >= %(since)s::timestamptz AND job_id IS NOT NULL
      ORDER BY at DESC, id DESC LIMIT 10 * %(limit)s) AS a
LEFT JOIN LATERAL (SELECT task, queue, tenant FROM rota.all_jobs AS known
                   WHERE known.id = a.job_id ORDER BY version DESC LIMIT 1) AS j ON true
WHERE (%(task)s::text IS NULL OR j.task = %(task)s::text)
  AND (%(queue)s::text IS NULL OR j.queue = %(queue)s::text)
  AND (%(tenant)s::text IS NULL OR j.tenant = %(tenant)s::text)
ORDER BY a.at DESC, a.id DESC
LIMIT %(limit)s
