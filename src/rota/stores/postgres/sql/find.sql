-- List jobs by filter, a page at a time, newest first. Ids are made
-- in order of time, so the page key is the id.
-- Reads the keys, or the index of a value that is asked for: those of 0001, and of finished days those of 0012.
SELECT
    id, version, state, task, queue, priority, payload::text, attempt, max_attempts, snoozes, losses, run_at,
    created_at, updated_at, claimed_at, finished_at, deadline, timeout, cancel_requested_at, session_id, tenant,
    subject, external_id, key, unique_key, unique_scope, gate, parked, correlation_id, parent_id, tags, created_by,
    category, payload_version, headers::text, error_class, error_message, reason, superseded_by, result::text, review
FROM rota.all_jobs
WHERE (%(states)s::text[] IS NULL OR state = ANY (%(states)s::text[]))
  AND (%(queue)s::text IS NULL OR queue = %(queue)s::text)
  AND (%(task)s::text IS NULL OR task = %(task)s::text)
  AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s::text)
  AND (%(subject)s::text IS NULL OR subject = %(subject)s::text)
  AND (%(external_id)s::text IS NULL OR external_id = %(external_id)s::text)
  AND (%(key)s::text IS NULL OR key = %(key)s::text)
  AND (%(correlation_id)s::text IS NULL OR correlation_id = %(correlation_id)s::text OR id = %(correlation_uuid)s::uuid)
  AND (%(parent_id)s::uuid IS NULL OR parent_id = %(parent_id)s::uuid)
  AND (%(session_id)s::uuid IS NULL OR session_id = %(session_id)s::uuid)
  AND (%(tag)s::text IS NULL OR tags @> ARRAY[%(tag)s::text])
  AND (%(before)s::uuid IS NULL OR id < %(before)s::uuid)
ORDER BY id DESC
LIMIT %(limit)s
