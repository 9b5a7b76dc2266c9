-- Let a token count no more. Of two who do it at once the second finds it done.
-- Reads the key of tokens.
UPDATE rota.tokens
SET revoked_at = coalesce(%(now)s::timestamptz, now()), revoked_by = %(by)s
WHERE id = %(id)s AND revoked_at IS NULL
RETURNING id, name, role, digest, tenant, created_by, created_at, expires_at, last_used_at, revoked_at, revoked_by
