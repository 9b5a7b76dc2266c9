-- Which indexes of dead letters are missing, or were left half made, if they are ours to make: only the owner may.
-- Reads the catalogue: pg_class by name.
SELECT missing.name, missing.definition, missing.broken
FROM rota.dead_indexes() AS missing
WHERE pg_has_role((SELECT c.relowner FROM pg_class AS c WHERE c.oid = 'rota.dead_jobs'::regclass), 'USAGE')
