-- Remove keys that hold nothing any more: their moment is past (or they had
-- none) and their job is not among the unfinished. Bounded batches. By place and
-- not by key: a key that was given to a new job since the snapshot has moved.
-- Reads index keys_until (until) and the key of jobs.
WITH gone AS (
    DELETE FROM rota.keys AS held
    WHERE held.ctid IN (
        SELECT old.ctid FROM rota.keys AS old
        WHERE (old.until IS NULL OR old.until <= coalesce(%(now)s::timestamptz, now()))
          AND NOT EXISTS (SELECT FROM rota.jobs AS j WHERE j.id = old.job_id)
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED)
    RETURNING held.key
)
SELECT count(*) FROM gone
