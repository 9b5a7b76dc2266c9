-- What all sessions did since then, by whole minutes, added up: by queue, task and
-- ending with both histograms, by tenant, and by lane. One row; no job is read.
-- The moment is written out each time: as a subquery it would tell the planner nothing.
-- Reads the keys of minutes, tenant_minutes and lane_minutes, by minute.
WITH span AS (
    SELECT date_trunc('minute', coalesce(%(now)s::timestamptz, now()) - %(since)s::interval) AS start,
           coalesce(%(now)s::timestamptz, now()) AS until
), mine AS MATERIALIZED (
    SELECT m.* FROM rota.minutes AS m
    WHERE m.minute >= date_trunc('minute', coalesce(%(now)s::timestamptz, now()) - %(since)s::interval)
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
SELECT span.start, span.until,
    (SELECT jsonb_agg(jsonb_build_array(s.queue, s.task, s.ending, s.jobs, s.wait_sum, s.run_sum, w.counts, r.counts)
                      ORDER BY s.queue COLLATE "C", s.task COLLATE "C", s.ending COLLATE "C")
     FROM (SELECT queue, task, ending, sum(jobs) AS jobs, sum(wait_sum) AS wait_sum, sum(run_sum) AS run_sum
           FROM mine GROUP BY 1, 2, 3) AS s
     LEFT JOIN waited AS w USING (queue, task, ending)
     LEFT JOIN ran AS r USING (queue, task, ending)),
    (SELECT jsonb_agg(jsonb_build_array(s.tenant, s.jobs, s.faults, s.run_sum) ORDER BY s.tenant COLLATE "C")
     FROM (SELECT t.tenant, sum(t.jobs) AS jobs, sum(t.faults) AS faults, sum(t.run_sum) AS run_sum
           FROM rota.tenant_minutes AS t
           WHERE t.minute >= date_trunc('minute', coalesce(%(now)s::timestamptz, now()) - %(since)s::interval)
           GROUP BY 1) AS s),
    (SELECT jsonb_agg(jsonb_build_array(s.lane, s.slots, s.busy) ORDER BY s.lane COLLATE "C")
     FROM (SELECT l.lane, sum(l.slots) AS slots, sum(l.busy) AS busy
           FROM rota.lane_minutes AS l
           WHERE l.minute >= date_trunc('minute', coalesce(%(now)s::timestamptz, now()) - %(since)s::interval)
           GROUP BY 1) AS s)
FROM span
