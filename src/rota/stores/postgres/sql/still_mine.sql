-- Whether a job still belongs to this claim: the first statement of a handler's
-- own transaction. It locks nothing: the fence is looked at once more, with a
-- lock, when the job is completed.
-- Reads the key of jobs.
SELECT true FROM rota.jobs AS job WHERE job.id = %(id)s AND job.version = %(version)s
