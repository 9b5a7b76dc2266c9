-- Jobs that died since a moment, newest first, whatever became of their review.
-- Reads index dead_jobs_review (review, finished_at).
SELECT finished_at, 'died', id, task, queue, tenant, attempt::integer, max_attempts::integer,
       extract(epoch FROM claimed_at - greatest(run_at, created_at))::float8, extract(epoch FROM finished_at - claimed_at)::float8,
       concat_ws(': ', error_type, error_message), NULL::timestamptz
FROM rota.dead_jobs
WHERE review = ANY (ARRAY['pending_review', 'reprocessing', 'acknowledged', 'resolved', 'discarded'])
  AND finished_at >= %(since)s::timestamptz
  AND (%(task)s::text IS NULL OR task = %(task)s::text)
  AND (%(queue)s::text IS NULL OR queue = %(queue)s::text)
  AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s::text)
ORDER BY finished_at DESC
LIMIT %(limit)s
