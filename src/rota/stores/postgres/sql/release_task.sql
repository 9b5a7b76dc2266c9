-- Park a task no longer, under one code version or under all. Answers the versions.
-- Reads the key of parked_tasks.
UPDATE rota.parked_tasks AS p
SET released_at = coalesce(%(now)s::timestamptz, now()), released_by = %(actor)s
WHERE p.task = %(task)s AND p.released_at IS NULL
  AND (%(code_version)s::text IS NULL OR p.code_version = %(code_version)s::text)
RETURNING p.code_version
