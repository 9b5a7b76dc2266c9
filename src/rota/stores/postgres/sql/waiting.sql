-- How many unfinished jobs each task and payload version has.
--
-- Reads jobs by no index, once over the table: only a deploy asks, and it must not miss one.
SELECT task, payload_version, count(*) FROM rota.jobs GROUP BY task, payload_version
ORDER BY task, payload_version NULLS FIRST
