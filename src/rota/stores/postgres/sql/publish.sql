-- Make tasks known; the newest code of a task wins.
--
-- Code versions have no order of their own, so the one that was seen first later
-- is the newer: an old worker that restarts in the middle of a deploy changes
-- nothing. Where no worker of the newer code lives any more, older code wins again.
-- Writes through the key of tasks; reads the keys of code_versions and index sessions_living.
WITH given AS (
    SELECT * FROM jsonb_to_recordset(%(tasks)s::jsonb) AS t (
        name text, queue text, priority smallint, retry jsonb, timeout real, payload_version text, schema jsonb,
        gate_path text, category text, code_version text, rules jsonb)
), seen AS (
    INSERT INTO rota.code_versions (version, first_seen)
    SELECT DISTINCT g.code_version, coalesce(%(now)s::timestamptz, now()) FROM given AS g WHERE g.code_version IS NOT NULL
    ON CONFLICT (version) DO NOTHING
)
INSERT INTO rota.tasks AS known (name, queue, priority, retry, timeout, payload_version, schema, gate_path, category,
    code_version, rules, published_at)
SELECT t.name, t.queue, t.priority, t.retry, t.timeout, t.payload_version, t.schema, t.gate_path, t.category,
    t.code_version, t.rules, coalesce(%(now)s::timestamptz, now())
FROM given AS t
ORDER BY t.name
ON CONFLICT (name) DO UPDATE SET
    queue = excluded.queue, priority = excluded.priority, retry = excluded.retry, timeout = excluded.timeout,
    payload_version = excluded.payload_version, schema = excluded.schema, gate_path = excluded.gate_path,
    category = excluded.category, code_version = excluded.code_version, rules = excluded.rules,
    published_at = excluded.published_at
WHERE known.code_version IS NULL OR excluded.code_version IS NULL OR known.code_version = excluded.code_version
   OR coalesce((SELECT v.first_seen FROM rota.code_versions AS v WHERE v.version = excluded.code_version), 'infinity')
      >= coalesce((SELECT v.first_seen FROM rota.code_versions AS v WHERE v.version = known.code_version), '-infinity')
   OR NOT EXISTS (SELECT FROM rota.sessions AS s
                  WHERE s.ended_at IS NULL AND s.lease_until > coalesce(%(now)s::timestamptz, now())
                    AND s.code_version = known.code_version)
