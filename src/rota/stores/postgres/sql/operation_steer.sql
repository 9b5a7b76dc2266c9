-- Stop a running operation, or let an unfinished one go on under another driver:
-- the old one finds out at its next step.
-- Reads the key of operations.
UPDATE rota.operations AS o
SET state = %(state)s, driver = coalesce(%(driver)s::uuid, o.driver), updated_at = coalesce(%(now)s::timestamptz, now())
WHERE o.id = %(id)s AND o.state <> 'finished' AND (%(state)s = 'running' OR o.state = 'running')
RETURNING id, verb, wanted::text, actor, reason, rate, total, done, refused, changed, cursor_id, state, driver, began_at,
          updated_at, capped
