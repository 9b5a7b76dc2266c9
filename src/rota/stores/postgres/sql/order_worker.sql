-- Leave an order with a living session that hears orders. What was asked before stands, but that a
-- worker which drains may be told to stop. Answers a row if the order was left.
-- Reads the key of sessions.
UPDATE rota.sessions AS s
SET ordered = %(verb)s, ordered_by = %(actor)s, ordered_at = coalesce(%(now)s::timestamptz, now()),
    ordered_because = %(reason)s
WHERE s.id = %(session)s AND s.ended_at IS NULL AND s.lease_until > coalesce(%(now)s::timestamptz, now())
  AND s.hears_orders AND (s.ordered IS NULL OR (s.ordered = 'drain' AND %(verb)s = 'stop'))
RETURNING s.id
