-- From which minute to when, and which part of it can be read as whole hours: those that begin at `whole` or later
-- and before `summed`. Nothing is lost when more hours are added up meanwhile: their minutes stay. Where minutes are no
-- longer kept, it begins with a whole hour.
-- Reads hours_until, a small table of one row.
SELECT asked.start, asked.now, asked.whole, greatest(asked.whole, (SELECT h.until FROM rota.hours_until AS h))
FROM (SELECT s.start, s.now, date_trunc('hour', s.start + interval '59 minutes', 'UTC') AS whole
      FROM (SELECT CASE WHEN m.start <= m.now - %(kept)s::interval THEN date_trunc('hour', m.start, 'UTC')
                        ELSE m.start END AS start, m.now
            FROM (SELECT date_trunc('minute', coalesce(%(now)s::timestamptz, now()) - %(since)s::interval) AS start,
                         coalesce(%(now)s::timestamptz, now()) AS now) AS m) AS s) AS asked
