-- End one session now; what it still owns is lost from here on.
-- Reads the key of sessions.
UPDATE rota.sessions AS s SET ended_at = coalesce(%(now)s::timestamptz, now())
WHERE s.id = %(session)s AND s.ended_at IS NULL
