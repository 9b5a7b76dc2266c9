-- Take rows of `rota bench` off for good, in one statement: what claiming and settling cannot be faster than.
-- Reads rota_bench by its key, from the last one on: what was deleted before is not looked at again.
DELETE FROM public.rota_bench WHERE id = ANY (ARRAY (
    SELECT id FROM public.rota_bench WHERE id > %(after)s ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
))
RETURNING id
