-- Complete a batch of jobs and claim the next, in one round trip and one commit.
--
-- Settle: delete by key with the version looked up by position. No join and no
-- test of the state: both make the planner walk another index when a long
-- transaction holds dead rows back, and the version is fence enough. Only what
-- did not land comes back (version negative), to be read by readback.sql.
-- Claim: as in claim.sql, which explains it.
-- Reads the key of jobs, then index jobs_due; writes finished_jobs.
WITH gone AS (
    DELETE FROM rota.jobs AS job
    WHERE job.id = ANY (%(ids)s::uuid[])
      AND job.version = (%(versions)s::integer[])[array_position(%(ids)s::uuid[], job.id)]
    RETURNING job.*
), kept AS (
    INSERT INTO rota.finished_jobs (
        id, run_at, created_at, claimed_at, finished_at, deadline, version, snoozes, priority, attempt, max_attempts,
        losses, timeout, session_id, parent_id, state, task, queue, payload, tenant, subject, external_id, key,
        unique_key, unique_scope, gate, correlation_id, tags, created_by, category, payload_version, headers, result)
    SELECT
        id, run_at, created_at, claimed_at, coalesce(%(now)s::timestamptz, now()), deadline, version + 1, snoozes,
        priority, attempt, max_attempts, losses, timeout, session_id, parent_id, 'completed', task, queue, payload,
        tenant, subject, external_id, key, unique_key, unique_scope, gate, correlation_id, tags, created_by, category,
        payload_version, headers, %(results)s::jsonb -> id::text
    FROM gone
    RETURNING id
), taken AS (
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
)
SELECT * FROM taken
UNION ALL
SELECT stale.id, -stale.version, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM unnest(%(ids)s::uuid[], %(versions)s::integer[]) AS stale (id, version)
WHERE stale.id NOT IN (SELECT kept.id FROM kept)
ORDER BY 5, 11, 1
