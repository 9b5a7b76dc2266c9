-- Whether there is more since a moment than happened_failed.sql and happened_acted.sql look at before their filter.
-- Reads indexes failed_attempts_ended and audit_at.
SELECT EXISTS (SELECT FROM rota.failed_attempts
               WHERE ended_at >= %(since)s::timestamptz
               ORDER BY ended_at DESC OFFSET 10 * %(limit)s)
    OR EXISTS (SELECT FROM rota.audit
               WHERE at >= %(since)s::timestamptz AND job_id IS NOT NULL
               ORDER BY at DESC OFFSET 10 * %(limit)s)
