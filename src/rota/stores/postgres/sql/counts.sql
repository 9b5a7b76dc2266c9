-- How many unfinished and dead jobs there are, by queue, task and state, each
-- side counted up to a cap so that a large backlog costs no more than a small one.
-- Reads jobs and dead_jobs without an index, at most `cap` rows each.
SELECT queue, task, state, count(*), min(run_at) FILTER (WHERE state = 'pending')
FROM (
    (SELECT state, queue, task, run_at FROM rota.jobs LIMIT %(cap)s)
    UNION ALL
    (SELECT 'dead', queue, task, run_at FROM rota.dead_jobs LIMIT %(cap)s)
) AS counted
GROUP BY queue, task, state
ORDER BY queue, task, state
