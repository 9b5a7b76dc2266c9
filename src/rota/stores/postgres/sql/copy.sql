-- Store many plain jobs at once, by COPY: several times as fast as any INSERT.
--
-- In binary form, which the server reads in two thirds of the time of text.
-- COPY knows no ON CONFLICT: a repeated id fails the whole batch, and the
-- batch then goes through enqueue.sql. Writes through the key of jobs.
COPY rota.jobs (
    id, task, payload, queue, priority, max_attempts, run_at, created_at, updated_at, deadline, timeout, tenant,
    subject, external_id, gate, correlation_id, parent_id, tags, created_by, category, payload_version, headers, state
) FROM STDIN (FORMAT binary)
