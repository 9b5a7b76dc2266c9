-- Make the coming days of finished jobs. Touches the catalogue only; no key.
SELECT rota.open_days(coalesce(%(now)s::timestamptz, now()))
