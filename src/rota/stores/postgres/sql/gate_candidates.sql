-- First half of a gated claim: lock due gated jobs whose gate can be locked.
--
-- Both locks are taken without waiting. The gate's lock is held to the end of
-- the transaction, and claim_gated.sql runs as a new statement under it, so its
-- count of running jobs cannot be older than the lock.
-- Reads index jobs_gated (queue, priority, run_at, id).
SELECT due.id, due.gate
FROM (
    SELECT c.id, c.gate FROM rota.jobs AS c
    WHERE c.state = 'pending' AND c.gate IS NOT NULL AND c.parked IS NULL
      AND (c.queue, c.priority) IN (SELECT * FROM unnest(%(queues)s::text[], %(priorities)s::smallint[]))
      AND c.run_at <= coalesce(%(now)s::timestamptz, now())
      AND (%(tasks)s::text[] IS NULL OR c.task = ANY (%(tasks)s::text[]))
      AND (%(tenant)s::text IS NULL OR c.tenant = %(tenant)s::text)
    ORDER BY c.priority, c.run_at, c.id
    LIMIT 200
    FOR UPDATE OF c SKIP LOCKED
) AS due
WHERE pg_try_advisory_xact_lock(hashtextextended(due.gate, 7091))
