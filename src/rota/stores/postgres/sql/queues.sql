-- The queues of which something is expected. Reads queues, a small table, by its key.
SELECT name, target FROM rota.queues ORDER BY name COLLATE "C"
