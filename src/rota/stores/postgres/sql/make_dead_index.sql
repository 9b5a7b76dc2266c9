-- Make an index of dead letters while others die and are reviewed.
-- Reads dead_jobs from end to end, twice: no key.
CREATE INDEX CONCURRENTLY {name} ON rota.dead_jobs {definition}
