-- The audit trail, newest first, of one job, of something else, or of all.
-- Reads index audit_job (job_id) or audit_about (about), or the key of audit backwards.
SELECT actor, action, job_id, reason, before, after, at, about, correlation_id, NULL::bigint, origin
FROM rota.audit
WHERE (%(id)s::uuid IS NULL OR job_id = %(id)s::uuid)
  AND (%(about)s::text IS NULL OR about = %(about)s::text)
ORDER BY id DESC
LIMIT %(limit)s
