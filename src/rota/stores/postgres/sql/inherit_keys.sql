-- Pass the keys that a dead job still holds to the job that does its work again.
-- By name, so that this reads the key of keys.
UPDATE rota.keys AS held SET job_id = %(id)s
WHERE held.job_id = %(dead)s AND held.tenant = coalesce(%(tenant)s, '')
  AND ((held.kind = 'idempotency' AND held.key IN (%(key)s, (SELECT d.key FROM rota.dead_jobs AS d WHERE d.id = %(dead)s)))
       OR (held.kind = 'unique' AND held.key = rota.unique_name(%(task)s, %(unique_key)s)))
