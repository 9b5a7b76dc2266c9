-- Give a locked unique key to a job.
-- Reads the key of keys.
UPDATE rota.keys AS held SET job_id = %(id)s, scope = %(scope)s
WHERE held.kind = 'unique' AND held.tenant = %(tenant)s AND held.key = rota.unique_name(%(task)s, %(key)s)
