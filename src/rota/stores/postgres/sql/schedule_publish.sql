-- Make schedules known as the code says them; the newest publication wins and operators' columns stay.
-- Other times than before count from now, so that no tick of the past is made good by them.
-- Writes through the key of schedules.
INSERT INTO rota.schedules AS old (name, task, template, timing, tz, jitter, overlap, misfire, cap, grace, windows,
    published_at, seen_at, cursor_at)
SELECT s.name, s.task, s.template, s.timing, s.tz, s.jitter, s.overlap, s.misfire, s.cap, s.grace, s.windows,
    at.moment, at.moment, at.moment
FROM jsonb_to_recordset(%(schedules)s::jsonb) AS s (
    name text, task text, template jsonb, timing text, tz text, jitter float8, overlap text, misfire text, cap integer,
    grace float8, windows text[]),
    (SELECT coalesce(%(now)s::timestamptz, now()) AS moment) AS at
ORDER BY s.name
ON CONFLICT (name) DO UPDATE SET
    task = excluded.task, template = excluded.template, timing = excluded.timing, tz = excluded.tz,
    jitter = excluded.jitter, overlap = excluded.overlap, misfire = excluded.misfire, cap = excluded.cap,
    grace = excluded.grace, windows = excluded.windows,
    published_at = excluded.published_at, seen_at = excluded.seen_at,
    version = old.version + CASE
        WHEN (old.task, old.template, old.timing, old.tz, old.jitter, old.overlap, old.misfire, old.cap, old.grace,
              old.windows)
            IS DISTINCT FROM
            (excluded.task, excluded.template, excluded.timing, excluded.tz, excluded.jitter, excluded.overlap,
             excluded.misfire, excluded.cap, excluded.grace, excluded.windows) THEN 1 ELSE 0 END,
    cursor_at = CASE
        WHEN (coalesce(old.edited_timing, old.timing), coalesce(old.edited_tz, old.tz))
            IS DISTINCT FROM
            (coalesce(old.edited_timing, excluded.timing), coalesce(old.edited_tz, excluded.tz))
        THEN greatest(old.cursor_at, excluded.cursor_at) ELSE old.cursor_at END
