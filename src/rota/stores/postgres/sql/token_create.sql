-- Store a new token's digest and what it may do, once. Writes through the key of tokens.
INSERT INTO rota.tokens (id, name, role, digest, tenant, created_by, created_at, expires_at)
VALUES (%(id)s, %(name)s, %(role)s, %(digest)s, %(tenant)s, %(created_by)s,
        coalesce(%(now)s::timestamptz, now()), %(expires_at)s::timestamptz)
ON CONFLICT (id) DO NOTHING
RETURNING id
