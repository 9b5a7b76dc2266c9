-- Prolong a living session; an ended or expired one never returns. Answers no
-- row then. Also: held jobs to cancel, held jobs that are no longer ours, and what
-- people asked the worker to do. No index has what is set here, so that it stays heap-only.
-- Reads the key of sessions and index jobs_running (session_id).
WITH alive AS (
    UPDATE rota.sessions AS s
    SET lease_until = coalesce(%(now)s::timestamptz, now()) + make_interval(secs => %(lease)s),
        memory = coalesce(%(memory)s::bigint, s.memory)
    WHERE s.id = %(session)s AND s.ended_at IS NULL AND s.lease_until > coalesce(%(now)s::timestamptz, now())
    RETURNING s.ordered
), mine AS (
    SELECT job.id, job.version, job.cancel_requested_at FROM rota.jobs AS job
    WHERE job.state = 'running' AND job.session_id = %(session)s
)
SELECT
    ARRAY (SELECT mine.id FROM mine WHERE mine.cancel_requested_at IS NOT NULL AND mine.id = ANY (%(ids)s::uuid[])),
    ARRAY (SELECT held.id FROM unnest(%(ids)s::uuid[], %(versions)s::integer[]) AS held (id, version)
           WHERE NOT EXISTS (SELECT FROM mine WHERE mine.id = held.id AND mine.version = held.version)),
    alive.ordered
FROM alive
