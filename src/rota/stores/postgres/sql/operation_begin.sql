-- Store a new bulk operation, once. Writes through the key of operations.
INSERT INTO rota.operations (id, verb, wanted, actor, reason, rate, total, capped, state, driver, began_at, updated_at)
VALUES (%(id)s, %(verb)s, %(wanted)s::jsonb, %(actor)s, %(reason)s, %(rate)s, %(total)s, %(capped)s, 'running', %(driver)s,
        coalesce(%(now)s::timestamptz, now()), coalesce(%(now)s::timestamptz, now()))
ON CONFLICT (id) DO NOTHING
RETURNING id
