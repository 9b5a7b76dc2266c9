-- First half of a gated claim: lock due gated jobs whose gate can be locked.
--
-- Pairs come in priority order and are read lazily, as in claim.sql. Both locks
-- are taken without waiting. The gate's lock is held to the end of
-- the transaction, and claim_gated.sql runs as a new statement under it, so its
-- count of running jobs cannot be older than the lock.
-- Reads index jobs_gated (queue, priority, run_at, id).
SELECT due.id, due.gate
FROM (
    SELECT c.id, c.gate
    FROM unnest(%(queues)s::text[], %(priorities)s::smallint[]) AS pair (queue, priority),
         LATERAL (
             SELECT j.id, j.gate FROM rota.jobs AS j
             WHERE j.state = 'pending' AND j.gate IS NOT NULL AND j.parked IS NULL
               AND j.queue = pair.queue AND j.priority = pair.priority
               AND j.run_at <= coalesce(%(now)s::timestamptz, now())
               AND (%(tasks)s::text[] IS NULL OR j.task = ANY (%(tasks)s::text[]))
               AND (%(tenant)s::text IS NULL OR j.tenant = %(tenant)s::text)
             ORDER BY j.run_at, j.id
             LIMIT 200
             FOR UPDATE OF j SKIP LOCKED
         ) AS c
    LIMIT 200
) AS due
WHERE pg_try_advisory_xact_lock(hashtextextended(due.gate, 7091))
