-- Park a task if so many different jobs of it crashed under one code version
-- since it was last released. Answers the task if this parked it.
--
-- Two crashes that are noted at once may each miss the other; the next one finds both.
-- Reads index crashes_task (task, code_version, at) and the key of parked_tasks.
WITH guilty AS (
    SELECT count(DISTINCT c.job_id)::integer AS jobs FROM rota.crashes AS c
    WHERE c.task = %(task)s AND c.code_version = %(code_version)s
      AND c.at > coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(within)s)
      AND c.at > coalesce((SELECT p.released_at FROM rota.parked_tasks AS p
                           WHERE p.task = %(task)s AND p.code_version = %(code_version)s), '-infinity')
)
INSERT INTO rota.parked_tasks AS parked (task, code_version, crashes, what, parked_at)
SELECT %(task)s, %(code_version)s, guilty.jobs, %(what)s, coalesce(%(now)s::timestamptz, now())
FROM guilty WHERE guilty.jobs >= %(limit)s
ON CONFLICT (task, code_version) DO UPDATE
SET crashes = excluded.crashes, what = excluded.what, parked_at = excluded.parked_at, released_at = NULL,
    released_by = NULL
WHERE parked.released_at IS NOT NULL
RETURNING task, code_version, crashes, what, parked_at
