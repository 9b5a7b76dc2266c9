-- Merge the tenants' minutes as roll.sql merges the others.
-- Reads index tenant_minutes_unmerged (minute) and the key of tenant_minutes.
WITH gone AS (
    DELETE FROM rota.tenant_minutes AS m
    WHERE m.minute = ANY (ARRAY (
        SELECT c.minute FROM rota.tenant_minutes AS c
        WHERE c.session_id <> '00000000-0000-0000-0000-000000000000'
          AND c.minute <= coalesce(%(now)s::timestamptz, now()) - %(merged_after)s::interval))
    RETURNING m.*
)
INSERT INTO rota.tenant_minutes (minute, session_id, tenant, jobs, faults, run_sum)
SELECT minute, '00000000-0000-0000-0000-000000000000', tenant, sum(jobs), sum(faults), sum(run_sum)
FROM gone
GROUP BY minute, tenant
