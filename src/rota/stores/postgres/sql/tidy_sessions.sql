-- Remove sessions that ended long ago and own nothing.
-- Reads sessions, a small table, and index jobs_running (session_id).
WITH gone AS (
    DELETE FROM rota.sessions AS s
    WHERE s.ended_at <= coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s)
      AND NOT EXISTS (SELECT FROM rota.jobs AS j WHERE j.state = 'running' AND j.session_id = s.id)
    RETURNING s.id
)
SELECT count(*) FROM gone
