-- Jobs as lists show them: of payloads and results that are longer than so many characters, the size in bytes alone. The
-- statement that lists them stands in place of the name in braces; nothing here changes its order.
-- Reads what that statement reads, by its keys and indexes.
SELECT
    id, version, state, task, queue, priority,
    CASE WHEN length(payload) <= %(longest)s THEN payload ELSE '{{}}' END, attempt, max_attempts, snoozes, losses, run_at,
    created_at, updated_at, claimed_at, finished_at, deadline, timeout, cancel_requested_at, session_id, tenant,
    subject, external_id, key, unique_key, unique_scope, gate, parked, correlation_id, parent_id, tags, created_by,
    category, payload_version, headers, error_class, error_message, reason, superseded_by,
    CASE WHEN length(result) <= %(longest)s THEN result WHEN result IS NOT NULL THEN 'null' END, review,
    CASE WHEN length(payload) > %(longest)s THEN octet_length(payload) END,
    CASE WHEN length(result) > %(longest)s THEN octet_length(result) END
FROM ({found}) AS listed
