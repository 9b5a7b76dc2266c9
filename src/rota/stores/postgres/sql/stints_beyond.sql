-- Whether there are more failed attempts since a moment than stints_failed.sql looks at before it picks one session's.
-- Reads index failed_attempts_ended.
SELECT EXISTS (SELECT FROM rota.failed_attempts
               WHERE ended_at >= %(since)s::timestamptz
               ORDER BY ended_at DESC OFFSET 10 * %(limit)s)
