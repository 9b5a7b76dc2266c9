-- Attempts of one session that ended their job well, or with its cancelling, since a moment within one day, newest
-- first, from block `place` of that day's table on. Rows are only ever added to a day, at its end, as happened_ended.sql
-- says: so its last blocks are read, and no index on finished_at is needed.
-- Reads the partition of that day from a block on.
SELECT id, task, queue, tenant, attempt::integer, claimed_at, finished_at, state
FROM rota.finished_jobs
WHERE finished_at >= %(since)s::timestamptz AND finished_at < %(until)s::timestamptz
  AND ctid >= %(place)s::tid
  AND session_id = %(session)s::uuid AND claimed_at IS NOT NULL
ORDER BY finished_at DESC
LIMIT %(limit)s
