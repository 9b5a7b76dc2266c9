-- Second half of a gated claim: for each locked gate that no running job is
-- in, claim its first candidate; park the other candidates behind it.
--
-- Candidates and gates are locked by gate_candidates.sql in this transaction.
-- Parked jobs leave the claim index until the gate frees (ungate.sql).
-- Reads the key of jobs and index jobs_in_gate (gate).
WITH candidate AS (
    SELECT j.id, j.gate,
           row_number() OVER (PARTITION BY j.gate ORDER BY j.priority, j.run_at, j.id) AS line,
           j.priority, j.run_at,
           EXISTS (SELECT FROM rota.jobs AS inside WHERE inside.state = 'running' AND inside.gate = j.gate) AS busy
    FROM rota.jobs AS j
    WHERE j.id = ANY (%(ids)s::uuid[])
), chosen AS (
    SELECT id FROM candidate WHERE line = 1 AND NOT busy ORDER BY priority, run_at, id LIMIT %(limit)s
), waiting AS (
    UPDATE rota.jobs AS job
    SET parked = 'gate', updated_at = coalesce(%(now)s::timestamptz, now())
    WHERE job.id = ANY (ARRAY (SELECT id FROM candidate WHERE busy OR line > 1))
    RETURNING job.id
), taken AS (
    UPDATE rota.jobs AS job
    SET state = 'running', version = job.version + 1, attempt = job.attempt + 1, session_id = %(session)s,
        claim_no = %(claim_no)s, claimed_at = coalesce(%(now)s::timestamptz, now()),
        updated_at = coalesce(%(now)s::timestamptz, now()), reason = NULL
    WHERE job.id = ANY (ARRAY (SELECT id FROM chosen))
      AND (SELECT s.ended_at IS NULL AND s.lease_until > coalesce(%(now)s::timestamptz, now())
           FROM rota.sessions AS s WHERE s.id = %(session)s)
    RETURNING
        job.id, job.version, job.task, job.queue, job.priority, job.payload::text, job.attempt, job.max_attempts,
        job.snoozes, job.losses, job.run_at, job.created_at, job.claimed_at, job.deadline, job.timeout, job.tenant,
        job.subject, job.external_id, job.key, job.unique_key, job.unique_scope, job.gate, job.correlation_id,
        job.parent_id, job.tags, job.created_by, job.category, job.payload_version, job.headers::text, job.error_class,
        job.error_message, job.cancel_requested_at
)
SELECT * FROM taken ORDER BY priority, run_at, id
