-- Turn ticks into jobs, once each: the function holds the row and the rules, in one call.
-- Reads the keys of schedules and schedule_ticks, then jobs by id.
SELECT of_tick, outcome, job FROM rota.fire(%(firing)s::jsonb, %(audit)s::jsonb, %(now)s::timestamptz)
