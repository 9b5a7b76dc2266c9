-- Which minute and moment it is, and whether it is ours to say how deep the queues are in it: nobody did, and nobody is about to.
-- Reads the key of depths.
SELECT asked.minute, asked.now,
       CASE WHEN EXISTS (SELECT FROM rota.depths AS d WHERE d.minute = asked.minute AND d.queue = '') THEN false
            ELSE pg_try_advisory_xact_lock(hashtextextended('rota.depths', 0)) END
FROM (SELECT date_trunc('minute', coalesce(%(now)s::timestamptz, now())) AS minute,
             coalesce(%(now)s::timestamptz, now()) AS now) AS asked
