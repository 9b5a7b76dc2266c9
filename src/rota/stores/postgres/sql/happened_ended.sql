-- Jobs that ended since a moment within one day, newest first, from block `place` of that day's table on.
--
-- There is no index on finished_at, because every settle would pay for it. Rows are only ever added to a day, at its
-- end: so its last blocks are read, which needs none. What was added elsewhere (into room that a deleted row left) is
-- not seen here.
-- Reads the partition of that day from a block on.
SELECT finished_at, state, id, task, queue, tenant, attempt::integer, max_attempts::integer,
       CASE WHEN state <> 'cancelled' THEN extract(epoch FROM claimed_at - greatest(run_at, created_at))::float8 END,
       extract(epoch FROM finished_at - claimed_at)::float8, reason, NULL::timestamptz
FROM rota.finished_jobs
WHERE finished_at >= %(since)s::timestamptz AND finished_at < %(until)s::timestamptz
  AND ctid >= %(place)s::tid
  AND (%(task)s::text IS NULL OR task = %(task)s::text)
  AND (%(queue)s::text IS NULL OR queue = %(queue)s::text)
  AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s::text)
ORDER BY finished_at DESC
LIMIT %(limit)s
