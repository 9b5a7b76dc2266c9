-- Living sessions and those that ended lately, newest first.
-- Reads sessions, a small table.
SELECT id, host, pid, lanes, started_at, lease_until, ended_at, tasks, code_version, queues, tenant, memory,
    coalesce(hears_orders, false), ordered, ordered_by, ordered_at, ordered_because
FROM rota.sessions
WHERE ended_at IS NULL OR ended_at > coalesce(%(now)s::timestamptz, now()) - interval '1 hour'
ORDER BY started_at DESC
LIMIT 500
