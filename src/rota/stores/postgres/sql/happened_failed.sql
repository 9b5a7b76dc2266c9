-- Attempts that failed since a moment, newest first, with what follows; those that were a job's last are told by
-- happened_died.sql. At most ten times the limit is looked at before the filter.
-- Reads index failed_attempts_ended, then the jobs by their keys.
SELECT a.ended_at, 'failed', a.job_id, j.task, j.queue, j.tenant, a.attempt::integer, j.max_attempts::integer,
       NULL::float8, extract(epoch FROM a.ended_at - a.started_at)::float8, a.error_type || ': ' || a.message,
       CASE WHEN j.state = 'pending' AND j.version = a.version + 1 THEN j.run_at END
FROM (SELECT * FROM rota.failed_attempts
      WHERE ended_at >= %(since)s::timestamptz
      ORDER BY ended_at DESC LIMIT 10 * %(limit)s) AS a
CROSS JOIN LATERAL (SELECT task, queue, tenant, max_attempts, state, version, run_at, finished_at
                    FROM rota.all_jobs AS known
                    WHERE known.id = a.job_id ORDER BY version DESC LIMIT 1) AS j
WHERE NOT (j.state = 'dead' AND j.finished_at = a.ended_at)
  AND (%(task)s::text IS NULL OR j.task = %(task)s::text)
  AND (%(queue)s::text IS NULL OR j.queue = %(queue)s::text)
  AND (%(tenant)s::text IS NULL OR j.tenant = %(tenant)s::text)
ORDER BY a.ended_at DESC
LIMIT %(limit)s
