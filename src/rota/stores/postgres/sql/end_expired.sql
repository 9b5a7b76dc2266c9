-- End every session whose lease is past, once and for all: a late beat cannot
-- revive it. Answers the seconds until the next living lease ends.
-- Reads index sessions_living.
WITH ended AS (
    UPDATE rota.sessions AS s SET ended_at = coalesce(%(now)s::timestamptz, now())
    WHERE s.ended_at IS NULL AND s.lease_until <= coalesce(%(now)s::timestamptz, now())
    RETURNING s.id
)
SELECT extract(epoch FROM min(s.lease_until) - coalesce(%(now)s::timestamptz, now()))::float8
FROM rota.sessions AS s
WHERE s.ended_at IS NULL AND s.lease_until > coalesce(%(now)s::timestamptz, now())
