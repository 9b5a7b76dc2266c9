-- Add up some hours of which no session may change a minute any more, and drop those that are too old; whether more
-- are left.
-- Reads the keys of minutes, tenant_minutes and lane_minutes, from where the last sum ended.
SELECT rota.sum_hours(
    coalesce(%(now)s::timestamptz, now()) - %(merged_after)s::interval,
    coalesce(%(now)s::timestamptz, now()) - %(hours_kept)s::interval)
