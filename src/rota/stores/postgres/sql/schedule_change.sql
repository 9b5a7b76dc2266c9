-- What an operator wants to stand in a schedule's row, if nobody changed it since it was read.
-- Writes through the key of schedules.
UPDATE rota.schedules AS s
SET version = s.version + 1,
    edited_timing = %(timing)s, edited_tz = %(tz)s, edited_jitter = %(jitter)s, edited_overlap = %(overlap)s,
    edited_misfire = %(misfire)s, edited_cap = %(cap)s, edited_grace = %(grace)s, edited_windows = %(windows)s::text[],
    edited_queue = %(queue)s, edited_priority = %(priority)s, edited_payload = %(payload_json)s::jsonb,
    paused_at = CASE WHEN %(paused)s THEN coalesce(s.paused_at, at.moment) END,
    paused_by = CASE WHEN %(paused)s THEN CASE WHEN s.paused_at IS NULL THEN %(actor)s ELSE s.paused_by END END,
    paused_because = CASE WHEN %(paused)s
        THEN CASE WHEN s.paused_at IS NULL THEN %(reason)s ELSE s.paused_because END END,
    cursor_at = CASE WHEN %(restart)s THEN greatest(s.cursor_at, at.moment) ELSE s.cursor_at END
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS moment) AS at
WHERE s.name = %(name)s AND s.version = %(version)s
RETURNING at.moment,
    name, task, template::text, timing, tz, jitter, overlap, misfire, cap, grace, windows,
    version, cursor_at, published_at, seen_at,
    edited_timing, edited_tz, edited_jitter, edited_overlap, edited_misfire, edited_cap, edited_grace, edited_windows,
    edited_queue, edited_priority, edited_payload::text, paused_at, paused_by, paused_because, forgotten_until
