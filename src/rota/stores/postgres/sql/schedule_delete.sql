-- Remove a schedule that no worker's code has any more, if nobody changed it since it was read. Whoever fires it
-- holds its row, so that this waits for them.
-- Writes through the key of schedules.
DELETE FROM rota.schedules AS s
WHERE s.name = %(name)s AND s.version = %(version)s
  AND s.seen_at < coalesce(%(now)s::timestamptz, now()) - %(absent_after)s::interval
RETURNING s.name
