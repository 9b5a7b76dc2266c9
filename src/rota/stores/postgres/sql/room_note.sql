-- Keep what takes room in these five minutes, unless somebody did: then nothing is measured.
-- Reads the key of room_samples; beyond that no rows of ours: catalogs, statistics, and the sizes of files.
WITH turn AS MATERIALIZED (
    SELECT slot.at
    FROM (SELECT date_bin('5 minutes', coalesce(%(now)s::timestamptz, now()), 'epoch'::timestamptz) AS at) AS slot
    WHERE NOT EXISTS (SELECT FROM rota.room_samples AS there WHERE there.at = slot.at)
)
INSERT INTO rota.room_samples (at, bytes, dead, oldest_transaction)
SELECT turn.at,
       (SELECT coalesce(sum(pg_total_relation_size(part.oid)), 0)::bigint FROM pg_class AS part
        WHERE part.relnamespace = 'rota'::regnamespace AND part.relkind = 'r'),
       (SELECT coalesce(sum(stat.n_dead_tup), 0)::bigint FROM pg_stat_all_tables AS stat WHERE stat.schemaname = 'rota'),
       (SELECT greatest(max(extract(epoch FROM now() - seen.xact_start)), 0)::float8 FROM pg_stat_activity AS seen
        WHERE seen.xact_start IS NOT NULL AND seen.datname = current_database() AND seen.pid <> pg_backend_pid())
FROM turn
ON CONFLICT (at) DO NOTHING
RETURNING 1
