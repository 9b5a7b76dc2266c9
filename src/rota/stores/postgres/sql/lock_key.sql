-- Lock a unique key for a job that wants to wait again, making it if retention
-- took it. Key first, job second: the order of every enqueue.
-- Reads the key of keys.
INSERT INTO rota.keys AS held (kind, tenant, key) VALUES ('unique', %(tenant)s, rota.unique_name(%(task)s, %(key)s))
ON CONFLICT (kind, tenant, key) DO UPDATE SET job_id = held.job_id
RETURNING held.job_id, held.scope, held.until > coalesce(%(now)s::timestamptz, now())
