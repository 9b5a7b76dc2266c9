-- The tasks that are parked now. Reads parked_tasks, a small table.
SELECT task, code_version, crashes, what, parked_at
FROM rota.parked_tasks
WHERE released_at IS NULL
ORDER BY task, parked_at, code_version
