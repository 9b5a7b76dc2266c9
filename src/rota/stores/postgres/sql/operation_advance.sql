-- Note how far the driver of an operation came, if it is still his and still runs.
-- Reads the key of operations.
UPDATE rota.operations AS o
SET done = %(done)s, refused = %(refused)s, changed = %(changed)s, cursor_id = %(cursor)s,
    state = CASE WHEN %(finished)s THEN 'finished' ELSE 'running' END,
    updated_at = coalesce(%(now)s::timestamptz, now())
WHERE o.id = %(id)s AND o.driver = %(driver)s AND o.state = 'running'
RETURNING o.id
