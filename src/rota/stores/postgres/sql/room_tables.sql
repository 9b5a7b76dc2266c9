-- What each table takes, its partitions together, the largest first. Rows and dead rows are the server's estimates.
-- Reads no rows and no index of ours: catalogs, statistics, and the sizes of files.
SELECT coalesce(parent.relname, part.relname)::text,
       count(parent.oid)::integer,
       sum(stat.n_live_tup)::bigint,
       sum(stat.n_dead_tup)::bigint,
       sum(pg_table_size(part.oid))::bigint,
       sum(pg_indexes_size(part.oid))::bigint,
       max(greatest(stat.last_vacuum, stat.last_autovacuum))
FROM pg_class AS part
LEFT JOIN pg_inherits AS tree ON tree.inhrelid = part.oid
LEFT JOIN pg_class AS parent ON parent.oid = tree.inhparent
LEFT JOIN pg_stat_all_tables AS stat ON stat.relid = part.oid
WHERE part.relnamespace = 'rota'::regnamespace AND part.relkind = 'r'
GROUP BY 1
ORDER BY sum(pg_total_relation_size(part.oid)) DESC, 1
