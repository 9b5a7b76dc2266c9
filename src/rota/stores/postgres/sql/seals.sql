-- The seals of the audit behind a place, in their order, each with its row if it is there.
-- Reads the keys of audit_seals and audit.
SELECT s.place, s.audit_id, s.at, s.digest, s.hash,
       a.actor, a.action, a.job_id, a.reason, a.before, a.after, a.at, a.about, a.correlation_id, a.id, a.origin
FROM rota.audit_seals AS s
LEFT JOIN rota.audit AS a ON a.id = s.audit_id
WHERE s.place > %(after)s
ORDER BY s.place
LIMIT %(limit)s
