-- Add a row to the audit about something that is done in many steps; once, also
-- when the answer was lost and it is sent again.
-- Reads index audit_about, and writes through the key of audit.
INSERT INTO rota.audit (at, actor, action, job_id, reason, before, after, about, correlation_id, origin)
SELECT coalesce(%(now)s::timestamptz, now()), %(actor)s::text, %(action)s::text, %(id)s::uuid, %(reason)s::text,
       %(before)s::text, %(after)s::text, %(about)s::text, %(correlation_id)s::text, %(origin)s::text
WHERE NOT EXISTS (SELECT FROM rota.audit AS told WHERE told.about = %(about)s AND told.action = %(action)s)
