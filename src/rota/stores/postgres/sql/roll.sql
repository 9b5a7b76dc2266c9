-- Merge the minutes of all sessions that none of them may change any more.
-- Answers how many minutes were merged.
--
-- What is deleted is inserted again in the same statement, added up: whoever
-- rolls at the same time waits for these rows and then finds none of them.
-- Reads index minutes_unmerged (minute) and the key of minutes.
WITH closed AS (
    SELECT DISTINCT m.minute FROM rota.minutes AS m
    WHERE m.session_id <> '00000000-0000-0000-0000-000000000000'
      AND m.minute <= coalesce(%(now)s::timestamptz, now()) - %(merged_after)s::interval
), gone AS (
    DELETE FROM rota.minutes AS m
    WHERE m.minute = ANY (ARRAY (SELECT c.minute FROM closed AS c))
    RETURNING m.*
), waited AS (
    SELECT minute, queue, task, ending, array_agg(place ORDER BY place) AS places, array_agg(n ORDER BY place) AS counts
    FROM (SELECT minute, queue, task, ending, h.place, sum(h.n)::bigint AS n
          FROM gone, unnest(gone.waits, gone.wait_counts) AS h (place, n) GROUP BY 1, 2, 3, 4, 5) AS counted
    GROUP BY 1, 2, 3, 4
), ran AS (
    SELECT minute, queue, task, ending, array_agg(place ORDER BY place) AS places, array_agg(n ORDER BY place) AS counts
    FROM (SELECT minute, queue, task, ending, h.place, sum(h.n)::bigint AS n
          FROM gone, unnest(gone.runs, gone.run_counts) AS h (place, n) GROUP BY 1, 2, 3, 4, 5) AS counted
    GROUP BY 1, 2, 3, 4
), merged AS (
    INSERT INTO rota.minutes (minute, session_id, queue, task, ending, jobs, wait_sum, run_sum, waits, wait_counts,
        runs, run_counts)
    SELECT s.minute, '00000000-0000-0000-0000-000000000000', s.queue, s.task, s.ending, s.jobs, s.wait_sum, s.run_sum,
        coalesce(w.places, '{}'), coalesce(w.counts, '{}'), coalesce(r.places, '{}'), coalesce(r.counts, '{}')
    FROM (SELECT minute, queue, task, ending, sum(jobs)::bigint AS jobs, sum(wait_sum) AS wait_sum,
                 sum(run_sum) AS run_sum
          FROM gone GROUP BY 1, 2, 3, 4) AS s
    LEFT JOIN waited AS w USING (minute, queue, task, ending)
    LEFT JOIN ran AS r USING (minute, queue, task, ending)
    RETURNING minute
)
SELECT count(DISTINCT minute) FROM merged
