-- How large the payloads of unfinished jobs are, as stored (compressed where the server does that), by task, with the
-- largest one. Sizes come from the row itself: no payload is read.
-- Reads jobs without an index, at most `cap` rows.
SELECT task, count(*), round(avg(size))::bigint, max(size), (array_agg(id ORDER BY size DESC, id DESC))[1]
FROM (SELECT id, task, pg_column_size(payload) AS size FROM rota.jobs LIMIT %(cap)s) AS looked
GROUP BY task
ORDER BY max(size) DESC, task
