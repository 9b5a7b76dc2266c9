-- What the dashboard shows and does: how deep the queues were, and bulk operations on jobs of any state.

-- A sample of the backlog for each minute in which somebody worked: queues that were not empty, and under the empty
-- name all of them together, so that a minute without work and one in which nobody looked are told apart.
CREATE TABLE rota.depths (
    minute      timestamptz NOT NULL,
    queue       text NOT NULL,
    pending     bigint NOT NULL,
    running     bigint NOT NULL,
    dead        bigint NOT NULL,
    oldest_wait float8 NOT NULL,
    PRIMARY KEY (minute, queue)
);

-- Verbs on jobs beside those on dead letters. Nullable, so that processes of the code before go on: their operations
-- were counted to the end.
ALTER TABLE rota.operations
    DROP CONSTRAINT operations_verb_check,
    ADD CONSTRAINT operations_verb_check CHECK (verb IN
        ('acknowledge', 'discard', 'reprocess', 'retry', 'cancel', 'hold', 'release', 'delete')),
    ADD COLUMN capped boolean;
