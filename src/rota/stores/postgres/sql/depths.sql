-- How deep the queues were from `start` on, in slices of `step` seconds, each called by its number: the most of each.
-- Reads the key of depths, by time.
SELECT extract(epoch FROM d.minute - %(start)s::timestamptz)::bigint / %(step)s::bigint, d.queue, max(d.pending),
       max(d.running), max(d.dead), max(d.oldest_wait), max(d.retrying)
FROM rota.depths AS d
WHERE d.minute >= %(start)s::timestamptz
GROUP BY 1, 2
ORDER BY d.queue COLLATE "C"
