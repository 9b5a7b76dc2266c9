-- The ended jobs, old enough to go, that unfinished ones name as their parent.
--
-- Asked once a day that is gone through and every quarter of a minute, not once a
-- batch: jobs has no index by parent (it would cost every claim), so this reads
-- all that is unfinished.
-- Reads jobs whole, then finished_jobs_id and the key of dead_jobs.
SELECT DISTINCT job.parent_id
FROM rota.jobs AS job
WHERE job.parent_id IS NOT NULL
  AND (EXISTS (SELECT FROM rota.finished_jobs AS f WHERE f.id = job.parent_id
               AND f.finished_at <= %(now)s::timestamptz - make_interval(secs => %(least)s))
       OR EXISTS (SELECT FROM rota.dead_jobs AS d WHERE d.id = job.parent_id))
