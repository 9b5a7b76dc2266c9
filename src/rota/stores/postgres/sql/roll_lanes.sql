-- Merge the lanes' minutes as roll.sql merges the others.
-- Reads index lane_minutes_unmerged (minute) and the key of lane_minutes.
WITH gone AS (
    DELETE FROM rota.lane_minutes AS m
    WHERE m.minute = ANY (ARRAY (
        SELECT c.minute FROM rota.lane_minutes AS c
        WHERE c.session_id <> '00000000-0000-0000-0000-000000000000'
          AND c.minute <= coalesce(%(now)s::timestamptz, now()) - %(merged_after)s::interval))
    RETURNING m.*
)
INSERT INTO rota.lane_minutes (minute, session_id, lane, slots, busy)
SELECT minute, '00000000-0000-0000-0000-000000000000', lane, sum(slots), sum(busy)
FROM gone
GROUP BY minute, lane
