-- Take the idempotency key of a job that does a dead one's work again, where it has another than the dead job.
-- Its arguments are hashed as in rota.enqueue_jobs(). Writes through the key of keys.
INSERT INTO rota.keys (kind, tenant, key, job_id, payload_hash, until)
SELECT 'idempotency', coalesce(%(tenant)s::text, ''), %(key)s::text, %(id)s::uuid,
    md5(%(task)s::text || %(payload)s::jsonb::text),
    coalesce(%(now)s::timestamptz, now()) + make_interval(secs => %(window)s::float8)
WHERE %(key)s::text IS DISTINCT FROM (SELECT d.key FROM rota.dead_jobs AS d WHERE d.id = %(dead)s::uuid)
ON CONFLICT (kind, tenant, key) DO NOTHING
