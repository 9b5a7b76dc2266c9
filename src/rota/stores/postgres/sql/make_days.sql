-- Make the coming days of finished jobs. Touches the catalogue only; no key.
SELECT rota.make_days(coalesce(%(now)s::timestamptz, now()))
