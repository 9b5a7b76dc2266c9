-- Bulk operations, newest first, of all or of one tenant, or one of them. They are few: people begin them.
-- Reads the key of operations.
SELECT id, verb, wanted::text, actor, reason, rate, total, done, refused, changed, cursor_id, state, driver, began_at,
       updated_at, capped
FROM rota.operations
WHERE (%(id)s::uuid IS NULL OR id = %(id)s::uuid)
  AND (%(tenant)s::text IS NULL OR wanted ->> 'tenant' = %(tenant)s::text)
ORDER BY id DESC
LIMIT %(limit)s
