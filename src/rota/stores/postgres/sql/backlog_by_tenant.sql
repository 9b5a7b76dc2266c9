-- How many jobs of each tenant wait in one queue, looking at the first `cap` of each kind only.
--
-- Reads the indexes jobs_due and jobs_gated by queue, in their order, then the jobs.
SELECT first.tenant, count(*)
FROM ((SELECT j.tenant FROM rota.jobs AS j
       WHERE j.queue = %(queue)s AND j.state = 'pending' AND j.gate IS NULL AND j.parked IS NULL
       ORDER BY j.priority, j.run_at, j.id LIMIT %(cap)s)
      UNION ALL
      (SELECT j.tenant FROM rota.jobs AS j
       WHERE j.queue = %(queue)s AND j.state = 'pending' AND j.gate IS NOT NULL AND j.parked IS NULL
       ORDER BY j.priority, j.run_at, j.id LIMIT %(cap)s)) AS first
GROUP BY first.tenant
