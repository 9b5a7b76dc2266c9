-- Make the table of `rota bench`, in a database of its own: what a queue of the least SQL would have.
-- Its key is all that it is asked by.
CREATE TABLE public.rota_bench (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload jsonb NOT NULL)
