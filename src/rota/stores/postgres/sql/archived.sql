-- What is left of jobs that retention let go, by id.
-- Reads the key of archived_jobs, a few months of it.
SELECT id, state, task, queue, tenant, category, subject, external_id, correlation_id, parent_id, created_by, attempts,
       losses, created_at, finished_at, archived_at, waited, ran, error_class, review, reviewed_by
FROM rota.archived_jobs
WHERE id = ANY (%(ids)s::uuid[])
