-- Be the one janitor that drops days; others leave it to us until we commit.
-- Two that detach at once would wait for each other. Touches no table: no key.
SELECT pg_try_advisory_xact_lock(hashtextextended('rota.drop_days', 0))
