-- Note that a living worker's code has these schedules, at most once a minute each. A row that somebody holds is
-- passed over: the next round comes soon.
-- Reads schedules, a small table, through its key.
UPDATE rota.schedules AS s
SET seen_at = coalesce(%(now)s::timestamptz, now())
WHERE s.name = ANY (ARRAY (
    SELECT stale.name FROM rota.schedules AS stale
    WHERE stale.name = ANY (%(names)s::text[])
      AND stale.seen_at <= coalesce(%(now)s::timestamptz, now()) - interval '1 minute'
    FOR UPDATE SKIP LOCKED
))
