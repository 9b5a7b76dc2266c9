-- Drop minutes that are too old, but for those that are not yet in the sum of their hour; samples of depth, and sums that are too old.
-- Reads the keys of minutes, depths and hours, and those of tenants and lanes, by time; and hours_until, a small table of one row.
WITH old AS (
    SELECT least(coalesce(%(now)s::timestamptz, now()) - %(kept)s::interval, h.until - interval '1 microsecond') AS minutes,
           coalesce(%(now)s::timestamptz, now()) - %(hours_kept)s::interval AS hours
    FROM rota.hours_until AS h
), tenants AS (
    DELETE FROM rota.tenant_minutes AS m WHERE m.minute <= (SELECT o.minutes FROM old AS o)
), lanes AS (
    DELETE FROM rota.lane_minutes AS m WHERE m.minute <= (SELECT o.minutes FROM old AS o)
), samples AS (
    DELETE FROM rota.depths AS d WHERE d.minute <= coalesce(%(now)s::timestamptz, now()) - %(kept)s::interval
), sums AS (
    DELETE FROM rota.hours AS h WHERE h.hour < (SELECT o.hours FROM old AS o)
), tenant_sums AS (
    DELETE FROM rota.tenant_hours AS h WHERE h.hour < (SELECT o.hours FROM old AS o)
), lane_sums AS (
    DELETE FROM rota.lane_hours AS h WHERE h.hour < (SELECT o.hours FROM old AS o)
)
DELETE FROM rota.minutes AS m WHERE m.minute <= (SELECT o.minutes FROM old AS o)
