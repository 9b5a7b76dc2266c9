-- Note that a job killed the process in which it was alone; noted again, it changes nothing.
-- Writes through the key of crashes.
INSERT INTO rota.crashes (job_id, version, task, code_version, what, at)
VALUES (%(job_id)s, %(version)s, %(task)s, %(code_version)s, %(what)s, coalesce(%(now)s::timestamptz, now()))
ON CONFLICT (job_id, version) DO NOTHING
