-- Let samples of what took room go that are too old to be drawn.
-- Reads the key of room_samples, by time.
WITH gone AS (
    DELETE FROM rota.room_samples AS s
    WHERE s.at < coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s)
    RETURNING 1
)
SELECT count(*) FROM gone
