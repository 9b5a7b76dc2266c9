-- Record what was done to something that is not a job; in the transaction of the action itself.
-- Writes through the key of audit.
INSERT INTO rota.audit (at, actor, action, about, reason, before, after, origin)
VALUES (coalesce(%(now)s::timestamptz, now()), %(actor)s, %(action)s, %(about)s, %(reason)s, %(before)s, %(after)s,
        %(origin)s)
