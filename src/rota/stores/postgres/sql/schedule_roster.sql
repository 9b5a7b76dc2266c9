-- The schedules by name, or all, with the time at which they were read.
-- Reads schedules, a small table, through its key.
SELECT coalesce(%(now)s::timestamptz, now()),
    name, task, template::text, timing, tz, jitter, overlap, misfire, cap, grace, windows,
    version, cursor_at, published_at, seen_at,
    edited_timing, edited_tz, edited_jitter, edited_overlap, edited_misfire, edited_cap, edited_grace, edited_windows,
    edited_queue, edited_priority, edited_payload::text, paused_at, paused_by, paused_because, forgotten_until
FROM rota.schedules
WHERE %(names)s::text[] IS NULL OR name = ANY (%(names)s::text[])
ORDER BY name
