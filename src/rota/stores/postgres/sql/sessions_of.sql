-- The sessions that a worker's name means: its host, or one process there.
-- Reads sessions, a small table.
SELECT id FROM rota.sessions
WHERE host = %(host)s::text AND (%(pid)s::integer IS NULL OR pid = %(pid)s::integer)
