-- Note the fingerprints of dead jobs that have none yet. No version grows: nothing happened to them.
-- Reads the key of dead_jobs.
UPDATE rota.dead_jobs AS dead SET fingerprint = given.fingerprint, error_type = given.error_type, frame = given.frame
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (id uuid, fingerprint text, error_type text, frame text)
WHERE dead.id = given.id AND dead.fingerprint IS NULL
