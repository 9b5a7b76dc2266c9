-- What the attempts of one job logged, oldest attempt first.
-- Reads the primary key (job_id, version).
SELECT version, attempt, lines, written, location FROM rota.job_logs WHERE job_id = %(id)s ORDER BY version
