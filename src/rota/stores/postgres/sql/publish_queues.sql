-- Make known what is expected of these queues; the newest word on each counts.
-- Writes through the key of queues, a small table.
INSERT INTO rota.queues AS known (name, target)
SELECT q.name, q.target FROM jsonb_to_recordset(%(queues)s::jsonb) AS q (name text, target float8)
ORDER BY q.name
ON CONFLICT (name) DO UPDATE SET target = excluded.target
WHERE known.target IS DISTINCT FROM excluded.target
