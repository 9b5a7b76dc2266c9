-- How many jobs share a state, a category and the class of their last error, of one tenant or of all; each of three
-- tables counted up to a cap, so that a long history costs no more than a short one.
-- Reads jobs, dead_jobs and finished_jobs, at most `cap` rows each; of one tenant, the last two by their tenant indexes.
SELECT state, category, error_class, count(*)
FROM (
    (SELECT state, category, error_class FROM rota.jobs
     WHERE %(tenant)s::text IS NULL OR tenant = %(tenant)s::text LIMIT %(cap)s)
    UNION ALL
    (SELECT 'dead', category, error_class FROM rota.dead_jobs
     WHERE %(tenant)s::text IS NULL OR tenant = %(tenant)s::text LIMIT %(cap)s)
    UNION ALL
    (SELECT state, category, error_class FROM rota.finished_jobs
     WHERE %(tenant)s::text IS NULL OR tenant = %(tenant)s::text LIMIT %(cap)s)
) AS looked (state, category, error_class)
GROUP BY state, category, error_class
ORDER BY state, category, error_class
