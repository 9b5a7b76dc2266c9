-- Keep how deep the queues are in a minute, unless somebody did since we asked whose turn it is.
-- Reads and writes through the key of depths.
INSERT INTO rota.depths (minute, queue, pending, running, dead, oldest_wait, retrying)
SELECT %(minute)s, d.queue, d.pending, d.running, d.dead, d.oldest_wait, d.retrying
FROM jsonb_to_recordset(%(depths)s::jsonb) AS d (
    queue text, pending bigint, running bigint, dead bigint, oldest_wait float8, retrying bigint)
WHERE NOT EXISTS (SELECT FROM rota.depths AS there WHERE there.minute = %(minute)s AND there.queue = '')
RETURNING 1
