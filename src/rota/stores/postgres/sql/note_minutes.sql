-- Keep what a session did in these minutes. Totals are absolute, so the last word
-- on a minute counts and repeating it changes nothing. A minute that is over for
-- long is left alone: it may have been merged, and would be counted twice.
-- Writes through the keys of minutes, tenant_minutes and lane_minutes.
WITH tenants AS (
    INSERT INTO rota.tenant_minutes (minute, session_id, tenant, jobs, faults, run_sum)
    SELECT t.minute, %(session)s, t.tenant, t.jobs, t.faults, t.run_sum
    FROM jsonb_to_recordset(%(tenants)s::jsonb) AS t (
        minute timestamptz, tenant text, jobs bigint, faults bigint, run_sum float8)
    WHERE t.minute > coalesce(%(now)s::timestamptz, now()) - %(open)s::interval
    ON CONFLICT (minute, session_id, tenant) DO UPDATE
    SET jobs = excluded.jobs, faults = excluded.faults, run_sum = excluded.run_sum
), lanes AS (
    INSERT INTO rota.lane_minutes (minute, session_id, lane, slots, busy)
    SELECT l.minute, %(session)s, l.lane, l.slots, l.busy
    FROM jsonb_to_recordset(%(lanes)s::jsonb) AS l (minute timestamptz, lane text, slots bigint, busy bigint)
    WHERE l.minute > coalesce(%(now)s::timestamptz, now()) - %(open)s::interval
    ON CONFLICT (minute, session_id, lane) DO UPDATE SET slots = excluded.slots, busy = excluded.busy
)
INSERT INTO rota.minutes (minute, session_id, queue, task, ending, jobs, wait_sum, run_sum, waits, wait_counts, runs,
    run_counts)
SELECT t.minute, %(session)s, t.queue, t.task, t.ending, t.jobs, t.wait_sum, t.run_sum, t.waits, t.wait_counts, t.runs,
    t.run_counts
FROM jsonb_to_recordset(%(totals)s::jsonb) AS t (
    minute timestamptz, queue text, task text, ending text, jobs bigint, wait_sum float8, run_sum float8,
    waits smallint[], wait_counts bigint[], runs smallint[], run_counts bigint[])
WHERE t.minute > coalesce(%(now)s::timestamptz, now()) - %(open)s::interval
ON CONFLICT (minute, session_id, queue, task, ending) DO UPDATE
SET jobs = excluded.jobs, wait_sum = excluded.wait_sum, run_sum = excluded.run_sum, waits = excluded.waits,
    wait_counts = excluded.wait_counts, runs = excluded.runs, run_counts = excluded.run_counts
