-- One row of `rota bench`: what an enqueue cannot be faster than on this server.
-- Writes through the key of rota_bench; reads nothing.
INSERT INTO public.rota_bench (payload) VALUES (%(payload)s::jsonb)
