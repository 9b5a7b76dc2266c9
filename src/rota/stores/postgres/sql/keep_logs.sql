-- Keep the newest lines of attempts, each in place of what was kept of it before.
--
-- Safe to repeat: an older tail of the same attempt changes nothing.
-- Finds its rows by the primary key (job_id, version).
INSERT INTO rota.job_logs AS kept (job_id, version, attempt, lines, written, location, updated_at)
SELECT t.job_id, t.version, t.attempt, t.lines, t.written, t.location, coalesce(%(now)s::timestamptz, now())
FROM jsonb_to_recordset(%(tails)s::jsonb)
    AS t (job_id uuid, version integer, attempt smallint, lines jsonb, written bigint, location text)
ON CONFLICT (job_id, version) DO UPDATE
SET lines = excluded.lines, written = excluded.written, location = excluded.location, updated_at = excluded.updated_at
WHERE excluded.written >= kept.written
