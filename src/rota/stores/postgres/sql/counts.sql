-- How many unfinished and dead jobs there are, by queue, task and state, each
-- side counted up to a cap so that a large backlog costs no more than a small one.
-- What runs is counted apart, and exactly: there is no more of it than slots.
-- Reads jobs and dead_jobs without an index, at most `cap` rows each; and index jobs_running.
SELECT queue, task, state, jobs, oldest, retrying
FROM (
    SELECT queue, task, state, count(*) AS jobs, min(run_at) FILTER (WHERE state = 'pending') AS oldest,
           count(*) FILTER (WHERE state = 'pending' AND attempt > 0) AS retrying
    FROM (SELECT state, queue, task, run_at, attempt FROM rota.jobs WHERE state <> 'running' LIMIT %(cap)s) AS waiting
    GROUP BY queue, task, state
    UNION ALL
    SELECT queue, task, 'running', count(*), NULL, 0 FROM rota.jobs WHERE state = 'running'
    GROUP BY queue, task
    UNION ALL
    SELECT queue, task, 'dead', count(*), NULL, 0
    FROM (SELECT queue, task FROM rota.dead_jobs LIMIT %(cap)s) AS dead
    GROUP BY queue, task
) AS counted
ORDER BY queue, task, state
