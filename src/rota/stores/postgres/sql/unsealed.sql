-- The first row of the audit without a seal among those that must have one: all since the first seal.
-- Reads the keys of audit and audit_seals, side by side and whole: for somebody who wants to be sure.
SELECT a.id
FROM rota.audit AS a
LEFT JOIN rota.audit_seals AS s ON s.audit_id = a.id
WHERE a.id > (SELECT min(first.audit_id) FROM rota.audit_seals AS first) AND s.audit_id IS NULL
ORDER BY a.id
LIMIT 1
