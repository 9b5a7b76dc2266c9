-- What workers tell of themselves, and what people ask of them from afar.

-- All nullable and without a default: no row is written anew. Workers of the code before go on as they are; they say
-- nothing of their memory, and by not saying that they hear orders they are given none.
ALTER TABLE rota.sessions
    ADD COLUMN memory bigint,
    ADD COLUMN hears_orders boolean,
    ADD COLUMN ordered text CHECK (ordered IN ('drain', 'stop')),
    ADD COLUMN ordered_by text,
    ADD COLUMN ordered_at timestamptz,
    ADD COLUMN ordered_because text;
