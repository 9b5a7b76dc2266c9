-- Tell workers of the (queue, priority) pairs of a batch, one hint a pair.
-- Touches no table, so it needs no key.
SELECT rota.hint(spot.queue, spot.priority, spot.gated)
FROM unnest(%(queues)s::text[], %(priorities)s::smallint[], %(gated)s::boolean[]) AS spot (queue, priority, gated)
