-- Attempts of one session that failed since a moment, newest first. At most ten times the limit is looked at.
-- Reads index failed_attempts_ended, then the jobs by their keys.
SELECT a.job_id, j.task, j.queue, j.tenant, a.attempt::integer, a.started_at, a.ended_at, a.outcome
FROM (SELECT * FROM rota.failed_attempts
      WHERE ended_at >= %(since)s::timestamptz
      ORDER BY ended_at DESC LIMIT 10 * %(limit)s) AS a
CROSS JOIN LATERAL (SELECT task, queue, tenant
                    FROM rota.all_jobs AS known
                    WHERE known.id = a.job_id ORDER BY version DESC LIMIT 1) AS j
WHERE a.session_id = %(session)s::uuid AND a.started_at IS NOT NULL
ORDER BY a.ended_at DESC
LIMIT %(limit)s
