-- From which minute to when, and which part of it can be read as whole hours: those that begin at `whole` or later
-- and before `summed`. Nothing is lost when more hours are added up meanwhile: their minutes stay.
-- Reads hours_until, a small table of one row.
SELECT asked.start, asked.now, asked.whole, greatest(asked.whole, (SELECT h.until FROM rota.hours_until AS h))
FROM (SELECT date_trunc('minute', coalesce(%(now)s::timestamptz, now()) - %(since)s::interval) AS start,
             coalesce(%(now)s::timestamptz, now()) AS now,
             date_trunc('hour', date_trunc('minute', coalesce(%(now)s::timestamptz, now()) - %(since)s::interval)
                                + interval '59 minutes', 'UTC') AS whole) AS asked
