-- Turn ticks into jobs, once each: the function holds the row and the rules, in one call.
-- Reads the keys of schedules and schedule_ticks, then jobs by id.
--
-- The function writes the audit itself; where the action came from is the default of its column, for this call only.
-- It is asked for with that value, so that it cannot be called before.
WITH said AS MATERIALIZED
    (SELECT set_config('rota.origin', coalesce(%(audit)s::jsonb ->> 'origin', ''), true) AS origin)
SELECT fired.of_tick, fired.outcome, fired.job
FROM said
CROSS JOIN LATERAL rota.fire(%(firing)s::jsonb, CASE WHEN said.origin IS NOT NULL THEN %(audit)s::jsonb END,
                             %(now)s::timestamptz) AS fired
