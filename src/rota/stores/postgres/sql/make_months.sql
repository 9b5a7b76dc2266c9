-- Make the coming month of the archive. Touches the catalogue only; no key.
SELECT rota.make_months(coalesce(%(now)s::timestamptz, now()))
