-- How long attempts ran for each tenant from `start` on, in slices of `step` seconds, each called by its number. What lies
-- before `summed` is read as hours, the rest as minutes, as in series.sql. Beyond the `top` tenants all are one, without
-- a name. No job is read.
-- Reads the keys of tenant_minutes and tenant_hours, by time.
WITH mine AS MATERIALIZED (
    SELECT extract(epoch FROM h.hour - %(start)s::timestamptz)::bigint / %(step)s::bigint AS slice, h.tenant, h.run_sum
    FROM rota.tenant_hours AS h WHERE h.hour >= %(start)s::timestamptz AND h.hour < %(summed)s::timestamptz
    UNION ALL
    SELECT extract(epoch FROM m.minute - %(start)s::timestamptz)::bigint / %(step)s::bigint, m.tenant, m.run_sum
    FROM rota.tenant_minutes AS m WHERE m.minute >= %(summed)s::timestamptz
), most AS (
    SELECT tenant FROM mine GROUP BY tenant ORDER BY sum(run_sum) DESC, tenant COLLATE "C" LIMIT %(top)s
)
SELECT mine.slice, most.tenant, sum(mine.run_sum)
FROM mine LEFT JOIN most ON most.tenant = mine.tenant
GROUP BY 1, 2
