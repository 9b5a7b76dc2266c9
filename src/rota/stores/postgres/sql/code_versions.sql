-- The code versions that were first seen last, the newest first.
-- Reads index code_versions_seen backwards.
SELECT version, first_seen
FROM rota.code_versions
ORDER BY first_seen DESC, version COLLATE "C"
LIMIT %(limit)s
