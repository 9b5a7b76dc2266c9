-- Drop a detached day, or put it back if there are jobs in it. Touches the
-- catalogue and the key of retention_days.
SELECT rota.drop_day(%(name)s)
