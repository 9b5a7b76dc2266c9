-- Every published task. Reads tasks, a small table, by its key.
SELECT name, queue, priority, retry::text, timeout, payload_version, schema::text, gate_path, category, code_version,
    rules::text
FROM rota.tasks ORDER BY name
