-- Record an operator's action; in the transaction of the action itself.
-- Writes through the key of audit.
INSERT INTO rota.audit (at, actor, action, job_id, reason, before, after, about, correlation_id, origin)
VALUES (coalesce(%(now)s::timestamptz, now()), %(actor)s, %(action)s, %(id)s, %(reason)s, %(before)s, %(after)s,
        %(about)s, %(correlation_id)s, %(origin)s)
