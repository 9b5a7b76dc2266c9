-- Tasks that were released just now: a worker that had not heard of it may still
-- have parked a job of theirs. Reads parked_tasks, a small table.
SELECT DISTINCT p.task FROM rota.parked_tasks AS p
WHERE p.released_at > coalesce(%(now)s::timestamptz, now()) - interval '2 minutes'
  AND NOT EXISTS (SELECT FROM rota.parked_tasks AS other WHERE other.task = p.task AND other.released_at IS NULL)
