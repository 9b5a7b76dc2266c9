-- Bulk operations, newest first, or one of them.
-- Reads the key of operations.
SELECT id, verb, wanted::text, actor, reason, rate, total, done, refused, changed, cursor_id, state, driver, began_at,
       updated_at
FROM rota.operations
WHERE %(id)s::uuid IS NULL OR id = %(id)s::uuid
ORDER BY id DESC
LIMIT %(limit)s
