-- The retention policies, the most specific first.
-- A small table, read without an index; the id is for those who count by policy.
SELECT p.keep, p.state, p.task, p.tenant, p.reason, p.set_by, p.set_at, p.id
FROM rota.retention AS p
ORDER BY p.weight DESC, p.state, p.task, p.tenant
