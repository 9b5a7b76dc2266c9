-- Access tokens: for people and programs that ask over HTTP. A token itself is
-- never here, only its SHA-256, so that this table is of no use to a thief.

CREATE TABLE rota.tokens (
    id           text PRIMARY KEY CHECK (id ~ '^[a-z2-7]{12}$'),
    name         text NOT NULL,
    role         text NOT NULL CHECK (role IN ('viewer', 'operator', 'manager')),
    digest       text NOT NULL CHECK (length(digest) = 64),
    tenant       text,
    created_by   text NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    revoked_by   text
) WITH (fillfactor = 50);
