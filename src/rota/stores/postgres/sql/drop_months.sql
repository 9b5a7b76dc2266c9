-- Drop the months of the archive that are wholly older than `keep` seconds. Touches the catalogue only; no key.
SELECT rota.drop_months(coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s))
