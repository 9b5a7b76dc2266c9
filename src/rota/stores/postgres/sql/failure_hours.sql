-- How many dead letters of each of these groups died in each of the last hours,
-- whatever their reviews: 0 is the hour until now, 1 the one before.
--
-- One range of the index for each group and review, and no more than a cap of
-- rows from each, the newest first: a mass failure costs no more than a small one.
-- Reads index dead_jobs_group (fingerprint, review, finished_at) alone.
WITH moment AS (
    SELECT coalesce(%(now)s::timestamptz, now()) AS now
)
SELECT g.fingerprint, hour.ago, count(*)
FROM moment,
    unnest(%(groups)s::text[]) AS g (fingerprint),
    unnest(%(reviews)s::text[]) AS r (review),
    LATERAL (
        SELECT dead.finished_at FROM rota.dead_jobs AS dead
        WHERE dead.fingerprint = g.fingerprint AND dead.review = r.review
          AND dead.finished_at > moment.now - make_interval(hours => %(hours)s) AND dead.finished_at <= moment.now
        ORDER BY dead.finished_at DESC LIMIT %(cap)s) AS died,
    LATERAL (SELECT floor(extract(epoch FROM moment.now - died.finished_at) / 3600)::int AS ago) AS hour
GROUP BY 1, 2
