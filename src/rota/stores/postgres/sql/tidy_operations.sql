-- Remove bulk operations that ended or were stopped long ago; the audit still tells of them.
-- A small table, read without an index.
WITH gone AS (
    DELETE FROM rota.operations AS o
    WHERE o.state <> 'running'
      AND o.updated_at <= coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s)
    RETURNING o.id
)
SELECT count(*) FROM gone
