-- For whom jobs run now, by queue and tenant, the most first. There are no more of them than slots.
-- Reads index jobs_running.
SELECT queue, tenant, count(*)::integer
FROM rota.jobs
WHERE state = 'running'
GROUP BY queue, tenant
ORDER BY count(*) DESC, queue COLLATE "C", coalesce(tenant, '') COLLATE "C"
