-- Begin a session. Repeated after a lost answer it changes nothing.
-- Writes through the key of sessions.
INSERT INTO rota.sessions (id, host, pid, os_user, lanes, tasks, code_version, queues, tenant, memory,
    hears_orders, started_at, lease_until)
VALUES (%(id)s, %(host)s, %(pid)s, %(user)s, %(lanes)s::jsonb, %(tasks)s, %(code_version)s, %(queues)s::jsonb, %(tenant)s,
        %(memory)s, %(hears)s, coalesce(%(now)s::timestamptz, now()), coalesce(%(now)s::timestamptz, now()) + make_interval(secs => %(lease)s))
ON CONFLICT (id) DO NOTHING
