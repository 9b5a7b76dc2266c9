-- All tokens, newest first, or the one with this id: checked at every request, so by the key.
-- Reads the key of tokens; without an id the whole of a small table.
SELECT id, name, role, digest, tenant, created_by, created_at, expires_at, last_used_at, revoked_at, revoked_by
FROM rota.tokens
WHERE %(id)s::text IS NULL OR id = %(id)s::text
ORDER BY created_at DESC, id
