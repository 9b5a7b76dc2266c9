-- Undo what a repeated enqueue stored a second time.
--
-- Runs in the transaction of the repeat, as a statement of its own: its
-- snapshot is newer than the insert, so a job that ended and moved while the
-- first answer was lost is seen here. Nobody has seen the second row yet.
-- A job that an operator deleted does not come back either: its versions would
-- begin anew, and an old claim of it could pass the fence.
-- Reads finished_jobs_id, the keys of dead_jobs and archived_jobs, and index audit_job (job_id).
DELETE FROM rota.jobs AS job
WHERE job.id = ANY (%(ids)s::uuid[])
  AND (EXISTS (SELECT FROM rota.finished_jobs AS finished WHERE finished.id = job.id)
       OR EXISTS (SELECT FROM rota.dead_jobs AS dead WHERE dead.id = job.id)
       OR EXISTS (SELECT FROM rota.archived_jobs AS archived WHERE archived.id = job.id)
       OR EXISTS (SELECT FROM rota.audit AS trail WHERE trail.job_id = job.id AND trail.action = 'delete'))
