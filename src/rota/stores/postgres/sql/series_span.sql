-- What time it is, and until when hours have been added up; not longer ago than hours are kept.
-- Reads hours_until, a small table of one row.
SELECT asked.now, greatest(asked.now - %(hours_kept)s::interval, (SELECT h.until FROM rota.hours_until AS h))
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS asked
