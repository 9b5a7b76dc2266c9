-- When the first job ended that is in block `place` of a day's table, or behind it. A day is filled in order of time:
-- what is before it ended earlier.
-- Reads the partition of that day from a block on, up to its first row.
SELECT finished_at
FROM rota.finished_jobs
WHERE finished_at >= %(day)s::timestamptz AND finished_at < %(until)s::timestamptz
  AND ctid >= %(place)s::tid
LIMIT 1
