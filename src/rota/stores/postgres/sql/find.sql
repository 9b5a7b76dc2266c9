-- Jobs by filter: the text that find_newest, find_oldest and find_urgent end, each in its order and at its page.
-- Reads the keys, or the index of a value that is asked for: those of 0001, and of finished days those of 0012. What has no
-- index (arguments, errors, priorities, attempts) is looked for along the key, job by job. When a job was made bounds its id, to a day.
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
  AND (%(ids)s::uuid[] IS NULL OR id = ANY (%(ids)s::uuid[]))
  AND (%(workers)s::uuid[] IS NULL OR session_id = ANY (%(workers)s::uuid[]))
  AND (%(created_from)s::timestamptz IS NULL OR (created_at >= %(created_from)s::timestamptz
       AND updated_at >= %(created_from)s::timestamptz AND id >= %(id_from)s::uuid))
  AND (%(created_until)s::timestamptz IS NULL OR (created_at < %(created_until)s::timestamptz AND id < %(id_until)s::uuid))
  AND (%(finished_from)s::timestamptz IS NULL OR finished_at >= %(finished_from)s::timestamptz)
  AND (%(finished_until)s::timestamptz IS NULL OR finished_at < %(finished_until)s::timestamptz)
  -- Sums and functions, for which the planner has no statistics: so it walks by id, and stops when the page is full.
  AND (%(category)s::text IS NULL OR coalesce(category, '') = %(category)s::text)
  AND (%(priority_from)s::integer IS NULL OR priority + 0 >= %(priority_from)s::integer)
  AND (%(priority_to)s::integer IS NULL OR priority + 0 <= %(priority_to)s::integer)
  AND (%(attempt_from)s::integer IS NULL OR attempt + 0 >= %(attempt_from)s::integer)
  AND (%(attempt_to)s::integer IS NULL OR attempt + 0 <= %(attempt_to)s::integer)
  AND (%(args)s::jsonpath IS NULL OR jsonb_path_match(payload, %(args)s::jsonpath, '{}', true))
  AND (%(error)s::text IS NULL OR state <> 'completed')
  AND (%(error)s::text IS NULL OR error_class = %(error)s::text OR (error_class IS NOT NULL AND (
       SELECT true FROM rota.failed_attempts AS a
       WHERE a.job_id = all_jobs.id
         AND (a.error_type = %(error)s::text OR right(a.error_type, length(%(error)s::text) + 1) = '.' || %(error)s::text)
       LIMIT 1)))
