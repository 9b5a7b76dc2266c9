-- Dead letters by filter, a page at a time, newest first, each with its review
-- and with a later success of the same task and subject or key.
-- Reads the key of dead_jobs, or the index of the one value that is asked for
-- (dead_jobs_group, dead_jobs_review, dead_jobs_subject, dead_jobs_correlation);
-- the successes by finished_jobs_subject and finished_jobs_key.
SELECT
    dead.id, version, 'dead', task, queue, priority, payload::text, attempt, max_attempts, snoozes, losses, run_at,
    created_at, finished_at, claimed_at, finished_at, deadline, timeout, NULL::timestamptz, session_id, tenant,
    subject, external_id, key, unique_key, unique_scope, gate, NULL::text, correlation_id, parent_id, tags, created_by,
    category, payload_version, headers::text, error_class, error_message, reason, NULL::uuid, NULL::text, review,
    fingerprint, error_type, frame, reviewed_by, reviewed_at, review_notes, reprocessed_as,
    (SELECT later.id FROM (
        (SELECT f.id, f.finished_at FROM rota.finished_jobs AS f
         WHERE f.subject = dead.subject AND f.task = dead.task AND f.tenant IS NOT DISTINCT FROM dead.tenant
           AND f.state = 'completed' AND f.finished_at > dead.finished_at
         ORDER BY f.finished_at DESC, f.id DESC LIMIT 1)
        UNION ALL
        (SELECT f.id, f.finished_at FROM rota.finished_jobs AS f
         WHERE f.key = dead.key AND f.task = dead.task AND f.tenant IS NOT DISTINCT FROM dead.tenant
           AND f.state = 'completed' AND f.finished_at > dead.finished_at
         ORDER BY f.finished_at DESC, f.id DESC LIMIT 1)) AS later
     ORDER BY later.finished_at DESC, later.id DESC LIMIT 1)
FROM rota.dead_jobs AS dead
WHERE (%(id)s::uuid IS NULL OR dead.id = %(id)s::uuid)
  AND (%(reviews)s::text[] IS NULL OR review = ANY (%(reviews)s::text[]))
  AND (%(group)s::text IS NULL OR fingerprint = %(group)s::text)
  AND (%(task)s::text IS NULL OR task = %(task)s::text)
  AND (%(queue)s::text IS NULL OR queue = %(queue)s::text)
  AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s::text)
  AND (%(error_class)s::text IS NULL OR error_class = %(error_class)s::text)
  AND (%(subject)s::text IS NULL OR subject = %(subject)s::text)
  AND (%(correlation_id)s::text IS NULL OR correlation_id = %(correlation_id)s::text
       OR dead.id = %(correlation_uuid)s::uuid)
  AND (%(since)s::timestamptz IS NULL OR finished_at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR finished_at <= %(until)s::timestamptz)
  AND (%(before)s::uuid IS NULL OR dead.id < %(before)s::uuid)
ORDER BY dead.id DESC
LIMIT %(limit)s
