-- The unfinished job that holds a key, kept from moving until we decide.
-- Reads the key of jobs.
SELECT job.state FROM rota.jobs AS job WHERE job.id = %(holder)s FOR SHARE OF job
