-- Give up to `limit` due jobs to a session, by (queue, priority) pairs.
--
-- Pairs come in priority order and are read lazily: the loop stops at the
-- limit, so exactly that many rows are locked and no backlog is sorted. An
-- ORDER BY outside would lock a limit's worth for every pair. A floor per pair
-- skips the dead entries of jobs that were claimed before. ANY (ARRAY (...)) is
-- evaluated once; a join may be planned to run the locking part again and again.
-- The caller sorts what comes back: a WITH around it for that made a claim of one
-- job slower by a fifteenth.
-- Reads index jobs_due (queue, priority, run_at, id).
UPDATE rota.jobs AS job
SET state = 'running', version = job.version + 1, attempt = job.attempt + 1, session_id = %(session)s,
    claim_no = %(claim_no)s, claimed_at = coalesce(%(now)s::timestamptz, now()),
    updated_at = coalesce(%(now)s::timestamptz, now()), reason = NULL
WHERE job.id = ANY (ARRAY (
    SELECT due.id
    FROM unnest(%(queues)s::text[], %(priorities)s::smallint[], %(floors)s::timestamptz[], %(floor_ids)s::uuid[])
             AS pair (queue, priority, floor, floor_id),
         LATERAL (
             SELECT c.id FROM rota.jobs AS c
             WHERE c.state = 'pending' AND c.gate IS NULL AND c.parked IS NULL
               AND c.queue = pair.queue AND c.priority = pair.priority
               AND c.run_at <= coalesce(%(now)s::timestamptz, now())
               AND (c.run_at, c.id) > (pair.floor, pair.floor_id)
               AND (%(tasks)s::text[] IS NULL OR c.task = ANY (%(tasks)s::text[]))
               AND (%(tenant)s::text IS NULL OR c.tenant = %(tenant)s::text)
             ORDER BY c.run_at, c.id
             LIMIT %(limit)s
             FOR UPDATE OF c SKIP LOCKED
         ) AS due
    WHERE (SELECT s.ended_at IS NULL AND s.lease_until > coalesce(%(now)s::timestamptz, now())
           FROM rota.sessions AS s WHERE s.id = %(session)s)
    LIMIT %(limit)s
))
RETURNING
    job.id, job.version, job.task, job.queue, job.priority, job.payload::text, job.attempt, job.max_attempts,
    job.snoozes, job.losses, job.run_at, job.created_at, job.claimed_at, job.deadline, job.timeout, job.tenant,
    job.subject, job.external_id, job.key, job.unique_key, job.unique_scope, job.gate, job.correlation_id,
    job.parent_id, job.tags, job.created_by, job.category, job.payload_version, job.headers::text, job.error_class,
    job.error_message, job.cancel_requested_at
