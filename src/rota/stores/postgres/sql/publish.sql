-- Make tasks known; the newest publication of a task wins.
-- Writes through the key of tasks.
INSERT INTO rota.tasks (name, queue, priority, retry, timeout, payload_version, schema, gate_path, category,
    code_version, published_at)
SELECT t.name, t.queue, t.priority, t.retry, t.timeout, t.payload_version, t.schema, t.gate_path, t.category,
    t.code_version, coalesce(%(now)s::timestamptz, now())
FROM jsonb_to_recordset(%(tasks)s::jsonb) AS t (
    name text, queue text, priority smallint, retry jsonb, timeout real, payload_version text, schema jsonb,
    gate_path text, category text, code_version text)
ORDER BY t.name
ON CONFLICT (name) DO UPDATE SET
    queue = excluded.queue, priority = excluded.priority, retry = excluded.retry, timeout = excluded.timeout,
    payload_version = excluded.payload_version, schema = excluded.schema, gate_path = excluded.gate_path,
    category = excluded.category, code_version = excluded.code_version, published_at = excluded.published_at
