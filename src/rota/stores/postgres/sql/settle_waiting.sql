-- Put jobs back to waiting (retry, snooze, hand back, hold, release, edit), each
-- if its version still holds; a failed attempt gets its row in the same commit.
--
-- By key and position as in exchange.sql, for the same reasons. An early return
-- to the list is hinted at. Answers the ids that were written.
-- Reads the key of jobs.
WITH given AS (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS g (
        id uuid, version integer, state text, attempt smallint, run_at timestamptz, reason text, snoozed boolean,
        lost boolean, cleared boolean, outcome text, error_class text, error_type text, message text, stack text, payload jsonb,
        priority smallint, queue text, parked text)
), moved AS (
    UPDATE rota.jobs AS job
    SET state = given.state, version = job.version + 1, updated_at = coalesce(%(now)s::timestamptz, now()),
        attempt = coalesce(given.attempt, job.attempt), run_at = coalesce(given.run_at, job.run_at),
        snoozes = job.snoozes + CASE WHEN given.snoozed THEN 1 ELSE 0 END,
        losses = CASE WHEN given.lost THEN job.losses + 1 WHEN given.cleared THEN 0 ELSE job.losses END,
        session_id = NULL, claim_no = NULL, parked = given.parked, reason = given.reason,
        error_class = coalesce(given.error_class, job.error_class),
        error_message = coalesce(given.message, job.error_message),
        payload = coalesce(given.payload, job.payload), priority = coalesce(given.priority, job.priority),
        queue = coalesce(given.queue, job.queue)
    FROM given
    WHERE job.id = ANY (%(ids)s::uuid[])
      AND job.version = (%(versions)s::integer[])[array_position(%(ids)s::uuid[], job.id)]
      AND given.id = job.id
    RETURNING job.id, job.queue, job.priority, job.gate, job.state, job.run_at, job.parked
), noted AS (
    INSERT INTO rota.failed_attempts (job_id, version, attempt, outcome, error_class, error_type, message, stack,
        session_id, started_at, ended_at)
    SELECT old.id, old.version, old.attempt, given.outcome, given.error_class, given.error_type, given.message,
        given.stack, old.session_id, old.claimed_at, coalesce(%(now)s::timestamptz, now())
    FROM moved JOIN given ON given.id = moved.id JOIN rota.jobs AS old ON old.id = moved.id
    WHERE given.error_class IS NOT NULL
    ON CONFLICT (job_id, version) DO NOTHING
), hinted AS (
    SELECT rota.hint(spot.queue, spot.priority, spot.gated)
    FROM (SELECT DISTINCT queue, priority, gate IS NOT NULL AS gated FROM moved
          WHERE state = 'pending' AND parked IS NULL AND run_at <= coalesce(%(now)s::timestamptz, now()) + interval '10 seconds') AS spot
)
SELECT moved.id, (SELECT count(*) FROM hinted) FROM moved
