-- The audit trail, newest first, of one job or of all.
-- Reads index audit_job (job_id), or the key of audit backwards.
SELECT actor, action, job_id, reason, before, after, at
FROM rota.audit
WHERE %(id)s::uuid IS NULL OR job_id = %(id)s::uuid
ORDER BY id DESC
LIMIT %(limit)s
