-- What all sessions did from `start` on, added up in slices of `step` seconds, each called by its number: by queue,
-- task and ending with both histograms. One row; no job is read. What lies before `summed` is read as hours, the rest
-- as minutes: where a slice is no whole number of hours, `summed` is `start`. Histograms are taken apart in the list of
-- columns, which takes half the time that it takes as a table.
-- Reads the keys of minutes and hours, by time.
WITH mine AS MATERIALIZED (
    SELECT extract(epoch FROM h.hour - %(start)s::timestamptz)::bigint / %(step)s::bigint AS slice,
           CASE WHEN %(apart)s THEN h.queue ELSE '' END AS queue, CASE WHEN %(apart)s THEN h.task ELSE '' END AS task,
           h.ending, h.jobs, h.wait_sum, h.run_sum, h.waits, h.wait_counts, h.runs, h.run_counts
    FROM rota.hours AS h WHERE h.hour >= %(start)s::timestamptz AND h.hour < %(summed)s::timestamptz
      AND (%(queue)s::text IS NULL OR h.queue = %(queue)s::text) AND (%(task)s::text IS NULL OR h.task = %(task)s::text)
    UNION ALL
    SELECT extract(epoch FROM m.minute - %(start)s::timestamptz)::bigint / %(step)s::bigint,
           CASE WHEN %(apart)s THEN m.queue ELSE '' END, CASE WHEN %(apart)s THEN m.task ELSE '' END, m.ending,
           m.jobs, m.wait_sum, m.run_sum, m.waits, m.wait_counts, m.runs, m.run_counts
    FROM rota.minutes AS m WHERE m.minute >= %(summed)s::timestamptz
      AND (%(queue)s::text IS NULL OR m.queue = %(queue)s::text) AND (%(task)s::text IS NULL OR m.task = %(task)s::text)
), waited AS (
    SELECT slice, queue, task, ending, jsonb_object_agg(place, n) AS counts
    FROM (SELECT slice, queue, task, ending, place, sum(n) AS n
          FROM (SELECT slice, queue, task, ending, unnest(waits) AS place, unnest(wait_counts) AS n FROM mine) AS each
          GROUP BY 1, 2, 3, 4, 5) AS counted
    GROUP BY 1, 2, 3, 4
), ran AS (
    SELECT slice, queue, task, ending, jsonb_object_agg(place, n) AS counts
    FROM (SELECT slice, queue, task, ending, place, sum(n) AS n
          FROM (SELECT slice, queue, task, ending, unnest(runs) AS place, unnest(run_counts) AS n FROM mine) AS each
          GROUP BY 1, 2, 3, 4, 5) AS counted
    GROUP BY 1, 2, 3, 4
)
SELECT jsonb_agg(jsonb_build_array(s.slice, s.queue, s.task, s.ending, s.jobs, s.wait_sum, s.run_sum, w.counts, r.counts)
                 ORDER BY s.queue COLLATE "C", s.task COLLATE "C", s.ending COLLATE "C")
FROM (SELECT slice, queue, task, ending, sum(jobs) AS jobs, sum(wait_sum) AS wait_sum, sum(run_sum) AS run_sum
      FROM mine GROUP BY 1, 2, 3, 4) AS s
LEFT JOIN waited AS w USING (slice, queue, task, ending)
LEFT JOIN ran AS r USING (slice, queue, task, ending)
