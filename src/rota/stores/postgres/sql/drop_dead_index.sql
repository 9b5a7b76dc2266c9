-- Drop an index of dead letters that was left half made, without making others wait. Touches no row: no key.
DROP INDEX CONCURRENTLY IF EXISTS rota.{name}
