-- Note that a token is used, at most once in `every` seconds: a busy one costs no write a request.
-- Reads the key of tokens.
UPDATE rota.tokens
SET last_used_at = coalesce(%(now)s::timestamptz, now())
WHERE id = %(id)s
  AND (last_used_at IS NULL
       OR last_used_at <= coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(every)s))
