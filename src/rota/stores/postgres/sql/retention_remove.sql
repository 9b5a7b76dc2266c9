-- Take away the policy about these jobs.
-- Reads index retention_scope.
DELETE FROM rota.retention AS p
WHERE coalesce(p.state, '') = coalesce(%(state)s, '') AND coalesce(p.task, '') = coalesce(%(task)s, '')
  AND coalesce(p.tenant, '') = coalesce(%(tenant)s, '')
RETURNING p.id
