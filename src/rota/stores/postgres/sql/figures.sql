-- What all sessions did from `start` on, added up: by queue, task and ending with
-- both histograms, by tenant, and by lane. One row; no job is read. What lies
-- between `whole` and `summed` is read as hours, the rest as minutes.
-- Reads the keys of minutes and hours, and those of tenants and lanes, by time.
WITH mine AS MATERIALIZED (
    SELECT m.queue, m.task, m.ending, m.jobs, m.wait_sum, m.run_sum, m.waits, m.wait_counts, m.runs, m.run_counts
    FROM rota.minutes AS m WHERE m.minute >= %(start)s::timestamptz AND m.minute < %(whole)s::timestamptz
    UNION ALL
    SELECT h.queue, h.task, h.ending, h.jobs, h.wait_sum, h.run_sum, h.waits, h.wait_counts, h.runs, h.run_counts
    FROM rota.hours AS h WHERE h.hour >= %(whole)s::timestamptz AND h.hour < %(summed)s::timestamptz
    UNION ALL
    SELECT m.queue, m.task, m.ending, m.jobs, m.wait_sum, m.run_sum, m.waits, m.wait_counts, m.runs, m.run_counts
    FROM rota.minutes AS m WHERE m.minute >= %(summed)s::timestamptz
), waited AS (
    SELECT queue, task, ending, jsonb_object_agg(place, n) AS counts
    FROM (SELECT queue, task, ending, h.place, sum(h.n) AS n
          FROM mine, unnest(mine.waits, mine.wait_counts) AS h (place, n) GROUP BY 1, 2, 3, 4) AS counted
    GROUP BY 1, 2, 3
), ran AS (
    SELECT queue, task, ending, jsonb_object_agg(place, n) AS counts
    FROM (SELECT queue, task, ending, h.place, sum(h.n) AS n
          FROM mine, unnest(mine.runs, mine.run_counts) AS h (place, n) GROUP BY 1, 2, 3, 4) AS counted
    GROUP BY 1, 2, 3
)
SELECT
    (SELECT jsonb_agg(jsonb_build_array(s.queue, s.task, s.ending, s.jobs, s.wait_sum, s.run_sum, w.counts, r.counts)
                      ORDER BY s.queue COLLATE "C", s.task COLLATE "C", s.ending COLLATE "C")
     FROM (SELECT queue, task, ending, sum(jobs) AS jobs, sum(wait_sum) AS wait_sum, sum(run_sum) AS run_sum
           FROM mine GROUP BY 1, 2, 3) AS s
     LEFT JOIN waited AS w USING (queue, task, ending)
     LEFT JOIN ran AS r USING (queue, task, ending)),
    (SELECT jsonb_agg(jsonb_build_array(s.tenant, s.jobs, s.faults, s.run_sum) ORDER BY s.tenant COLLATE "C")
     FROM (SELECT t.tenant, sum(t.jobs) AS jobs, sum(t.faults) AS faults, sum(t.run_sum) AS run_sum
           FROM (SELECT m.tenant, m.jobs, m.faults, m.run_sum FROM rota.tenant_minutes AS m
                 WHERE m.minute >= %(start)s::timestamptz AND m.minute < %(whole)s::timestamptz
                 UNION ALL
                 SELECT h.tenant, h.jobs, h.faults, h.run_sum FROM rota.tenant_hours AS h
                 WHERE h.hour >= %(whole)s::timestamptz AND h.hour < %(summed)s::timestamptz
                 UNION ALL
                 SELECT m.tenant, m.jobs, m.faults, m.run_sum FROM rota.tenant_minutes AS m
                 WHERE m.minute >= %(summed)s::timestamptz) AS t
           GROUP BY 1) AS s),
    (SELECT jsonb_agg(jsonb_build_array(s.lane, s.slots, s.busy) ORDER BY s.lane COLLATE "C")
     FROM (SELECT l.lane, sum(l.slots) AS slots, sum(l.busy) AS busy
           FROM (SELECT m.lane, m.slots, m.busy FROM rota.lane_minutes AS m
                 WHERE m.minute >= %(start)s::timestamptz AND m.minute < %(whole)s::timestamptz
                 UNION ALL
                 SELECT h.lane, h.slots, h.busy FROM rota.lane_hours AS h
                 WHERE h.hour >= %(whole)s::timestamptz AND h.hour < %(summed)s::timestamptz
                 UNION ALL
                 SELECT m.lane, m.slots, m.busy FROM rota.lane_minutes AS m
                 WHERE m.minute >= %(summed)s::timestamptz) AS l
           GROUP BY 1) AS s)
