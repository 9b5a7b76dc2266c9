-- How and when dead jobs died, by filter, newest first: what the groups of one tenant are made of.
-- Thousands are read to be counted, so nothing that may be large is among it, and no later success is looked for.
-- Reads the key of dead_jobs, or the index of the one value that is asked for, as dead_letters.sql does.
SELECT dead.id, task, finished_at, fingerprint, error_class, error_type, frame, error_message
FROM rota.dead_jobs AS dead
WHERE (%(reviews)s::text[] IS NULL OR review = ANY (%(reviews)s::text[]))
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
