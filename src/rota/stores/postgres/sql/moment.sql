-- The moment that counts for a question of several statements. Reads no table, so no key.
SELECT coalesce(%(now)s::timestamptz, now())
