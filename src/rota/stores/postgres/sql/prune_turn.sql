-- Take the turn to purge, or prolong it; nothing when it is somebody else's. And
-- the moment that counts for the whole round.
-- Writes through the key of turns.
INSERT INTO rota.turns AS turn (chore, holder, until)
VALUES ('prune', %(holder)s, coalesce(%(now)s::timestamptz, now()) + make_interval(secs => %(lease)s))
ON CONFLICT (chore) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE turn.holder = excluded.holder OR turn.until <= coalesce(%(now)s::timestamptz, now())
RETURNING coalesce(%(now)s::timestamptz, now())
