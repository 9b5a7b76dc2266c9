-- The audit by filter, newest first.
-- Reads index audit_actor, audit_action, audit_job, audit_about, audit_correlation
-- or audit_at, whichever fits what is asked; else the key of audit backwards.
SELECT actor, action, job_id, reason, before, after, at, about, correlation_id, id, origin
FROM rota.audit
WHERE (%(actor)s::text IS NULL OR actor = %(actor)s::text)
  AND (%(action)s::text IS NULL OR action = %(action)s::text)
  AND (%(job_id)s::uuid IS NULL OR job_id = %(job_id)s::uuid)
  AND (%(about)s::text IS NULL OR about = %(about)s::text)
  AND (%(correlation_id)s::text IS NULL OR correlation_id = %(correlation_id)s::text)
  AND (%(since)s::timestamptz IS NULL OR at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR at <= %(until)s::timestamptz)
  AND (%(before)s::bigint IS NULL OR id < %(before)s::bigint)
ORDER BY id DESC
LIMIT %(limit)s
