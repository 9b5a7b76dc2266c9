-- Dead letters by fingerprint: how many, since when, how many in the last hour
-- and in the one before, with the newest one as an example.
--
-- A loose index scan: one probe a group, and each count stops at a cap, so that
-- a mass failure costs no more than a small one. The order inside the counts
-- keeps them on the index, however many rows a group has.
-- Reads index dead_jobs_group (fingerprint, review, finished_at).
WITH RECURSIVE kind AS (
    (SELECT dead.fingerprint FROM rota.dead_jobs AS dead
     WHERE dead.fingerprint IS NOT NULL AND (%(group)s::text IS NULL OR dead.fingerprint = %(group)s::text)
     ORDER BY dead.fingerprint LIMIT 1)
    UNION ALL
    SELECT step.fingerprint
    FROM kind, LATERAL (
        SELECT dead.fingerprint FROM rota.dead_jobs AS dead
        WHERE dead.fingerprint > kind.fingerprint
          AND (%(group)s::text IS NULL OR dead.fingerprint = %(group)s::text)
        ORDER BY dead.fingerprint LIMIT 1) AS step
), moment AS (
    SELECT coalesce(%(now)s::timestamptz, now()) AS now
), seen AS (
    SELECT kind.fingerprint, first_one.finished_at AS first_seen, newest.*
    FROM kind
    CROSS JOIN LATERAL (
        SELECT edge.finished_at
        FROM unnest(%(reviews)s::text[]) AS r (review), LATERAL (
            SELECT dead.finished_at FROM rota.dead_jobs AS dead
            WHERE dead.fingerprint = kind.fingerprint AND dead.review = r.review
            ORDER BY dead.finished_at LIMIT 1) AS edge
        ORDER BY 1 LIMIT 1) AS first_one
    CROSS JOIN LATERAL (
        SELECT edge.*
        FROM unnest(%(reviews)s::text[]) AS r (review), LATERAL (
            SELECT dead.finished_at AS last_seen, dead.id, dead.task, dead.error_class, dead.error_type, dead.frame,
                dead.error_message
            FROM rota.dead_jobs AS dead
            WHERE dead.fingerprint = kind.fingerprint AND dead.review = r.review
            ORDER BY dead.finished_at DESC LIMIT 1) AS edge
        ORDER BY 1 DESC LIMIT 1) AS newest
), shown AS (
    SELECT * FROM seen
    WHERE %(task)s::text IS NULL OR task = %(task)s::text
    ORDER BY last_seen DESC, fingerprint DESC
    LIMIT %(limit)s
)
SELECT shown.fingerprint, task, error_class, error_type, frame, error_message,
    (SELECT count(*)
     FROM unnest(%(reviews)s::text[]) AS r (review), LATERAL (
         SELECT FROM rota.dead_jobs AS dead
         WHERE dead.fingerprint = shown.fingerprint AND dead.review = r.review
         ORDER BY dead.finished_at DESC LIMIT %(cap)s) AS counted),
    first_seen, last_seen,
    (SELECT count(*)
     FROM unnest(%(reviews)s::text[]) AS r (review), LATERAL (
         SELECT FROM rota.dead_jobs AS dead
         WHERE dead.fingerprint = shown.fingerprint AND dead.review = r.review
           AND dead.finished_at > moment.now - interval '1 hour'
         ORDER BY dead.finished_at DESC LIMIT %(cap)s) AS counted),
    (SELECT count(*)
     FROM unnest(%(reviews)s::text[]) AS r (review), LATERAL (
         SELECT FROM rota.dead_jobs AS dead
         WHERE dead.fingerprint = shown.fingerprint AND dead.review = r.review
           AND dead.finished_at > moment.now - interval '2 hours' AND dead.finished_at <= moment.now - interval '1 hour'
         ORDER BY dead.finished_at DESC LIMIT %(cap)s) AS counted),
    shown.id
FROM shown, moment
ORDER BY last_seen DESC, shown.fingerprint DESC
