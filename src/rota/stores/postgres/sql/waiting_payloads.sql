-- A few payloads of each task and payload version that waits, for the new code to try.
--
-- Reads jobs by no index and stops at `sample`: soon for what is common, and
-- once over the table for what is rare. Only a deploy asks.
SELECT asked.task, asked.version, job.id, job.payload::text
FROM unnest(%(tasks)s::text[], %(versions)s::text[]) AS asked (task, version),
     LATERAL (
         SELECT j.id, j.payload FROM rota.jobs AS j
         WHERE j.task = asked.task AND j.payload_version IS NOT DISTINCT FROM asked.version
         LIMIT %(sample)s
     ) AS job
