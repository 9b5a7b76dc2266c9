-- What took room from `start` on, in slices of `step` seconds, each called by its number: the most of each.
-- Reads the key of room_samples, by time.
SELECT extract(epoch FROM s.at - %(start)s::timestamptz)::bigint / %(step)s::bigint, max(s.bytes), max(s.dead),
       max(s.oldest_transaction)
FROM rota.room_samples AS s
WHERE s.at >= %(start)s::timestamptz
GROUP BY 1
