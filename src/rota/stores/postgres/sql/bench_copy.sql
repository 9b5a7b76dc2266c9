-- Many rows of `rota bench` at once: what a bulk enqueue cannot be faster than.
-- Writes through the key of rota_bench; reads nothing.
COPY public.rota_bench (payload) FROM STDIN
