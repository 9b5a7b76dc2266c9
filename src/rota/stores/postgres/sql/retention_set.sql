-- Let a policy count in place of the one about the same jobs. The same word
-- again, after a lost answer, changes nothing.
-- Writes through index retention_scope.
INSERT INTO rota.retention AS p (state, task, tenant, keep, reason, set_by, set_at)
VALUES (%(state)s, %(task)s, %(tenant)s, %(keep)s, %(reason)s, %(set_by)s, coalesce(%(now)s::timestamptz, now()))
ON CONFLICT (coalesce(state, ''), coalesce(task, ''), coalesce(tenant, '')) DO UPDATE
SET keep = excluded.keep, reason = excluded.reason, set_by = excluded.set_by, set_at = excluded.set_at
WHERE (p.keep, p.reason, p.set_by) IS DISTINCT FROM (excluded.keep, excluded.reason, excluded.set_by)
