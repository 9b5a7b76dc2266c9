-- Store the new job of a dead one, with the keys that it takes over. They are not
-- asked again: the transaction of the review holds the dead job's row.
-- Writes through the key of jobs.
WITH made AS (
    INSERT INTO rota.jobs (
        id, task, payload, queue, priority, max_attempts, run_at, created_at, updated_at, timeout, tenant, subject,
        external_id, key, unique_key, unique_scope, gate, correlation_id, parent_id, tags, created_by, category,
        payload_version, headers, losses)
    VALUES (
        %(id)s, %(task)s, %(payload)s, %(queue)s, %(priority)s, %(max_attempts)s,
        coalesce(%(now)s::timestamptz, now()), coalesce(%(now)s::timestamptz, now()),
        coalesce(%(now)s::timestamptz, now()), %(timeout)s, %(tenant)s, %(subject)s, %(external_id)s, %(key)s,
        %(unique_key)s, %(unique_scope)s, %(gate)s, %(correlation_id)s, %(parent_id)s, %(tags)s, %(created_by)s,
        %(category)s, %(payload_version)s, %(headers)s,
        (SELECT CASE WHEN dead.error_class = 'crash' THEN 1 ELSE 0 END
         FROM rota.dead_jobs AS dead WHERE dead.id = %(parent_id)s))
    RETURNING queue, priority, gate
)
SELECT rota.hint(made.queue, made.priority, made.gate IS NOT NULL) FROM made
