-- Jobs that were stored since a moment, newest first. Ids are made in order of time, so that their key finds
-- them; the stored moment then leaves out those whose maker's clock runs ahead.
-- Reads the keys of jobs and dead_jobs, and finished_jobs_id.
SELECT created_at, 'enqueued', id, task, queue, tenant, NULL::integer, NULL::integer, NULL::float8, NULL::float8,
       NULL::text, NULL::timestamptz
FROM rota.all_jobs
WHERE id >= %(first)s::uuid
  AND created_at >= %(since)s::timestamptz
  AND (%(task)s::text IS NULL OR task = %(task)s::text)
  AND (%(queue)s::text IS NULL OR queue = %(queue)s::text)
  AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s::text)
ORDER BY id DESC
LIMIT %(limit)s
