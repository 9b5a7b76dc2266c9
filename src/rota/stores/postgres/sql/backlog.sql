-- How many jobs wait in one queue, counting at most `cap` of each kind.
--
-- Reads the indexes jobs_due and jobs_gated by queue, without the jobs themselves. The order is the indexes' own:
-- without it a planner that remembers a long backlog would rather walk the table.
SELECT (SELECT count(*)
        FROM (SELECT FROM rota.jobs AS j
              WHERE j.queue = %(queue)s AND j.state = 'pending' AND j.gate IS NULL AND j.parked IS NULL
              ORDER BY j.priority, j.run_at, j.id LIMIT %(cap)s) AS free)
     + (SELECT count(*)
        FROM (SELECT FROM rota.jobs AS j
              WHERE j.queue = %(queue)s AND j.state = 'pending' AND j.gate IS NOT NULL AND j.parked IS NULL
              ORDER BY j.priority, j.run_at, j.id LIMIT %(cap)s) AS gated)
