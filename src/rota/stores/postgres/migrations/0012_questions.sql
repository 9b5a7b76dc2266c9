-- Questions beside a million finished jobs: indexes where they cost the settling of jobs nothing or little, and
-- operator views whose price does not grow with the backlog.
--
-- Not one index on `jobs`: each would be paid by every enqueue, claim and settle. What is asked about the unfinished
-- is answered by its few indexes, or by a look at the backlog itself.

-- Indexes of one day of finished jobs. Those of a day that is filled cost nothing for a job without a tenant and
-- without tags that completed. When the day is over nobody settles into it, and it gets those that every job would pay.
CREATE FUNCTION rota.index_day(name text, over boolean) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON rota.%I (tenant, id) WHERE tenant IS NOT NULL',
        name || '_tenant', name);
    EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON rota.%I USING gin (tags) WHERE tags IS NOT NULL',
        name || '_tags', name);
    EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON rota.%I (id) WHERE state <> ''completed''',
        name || '_other', name);
    IF over THEN
        EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON rota.%I (task, id)', name || '_task', name);
        EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON rota.%I (queue, id)', name || '_queue', name);
    END IF;
END
$$;

-- Give the next day that is over its last indexes; how many days had none. One at a time: while an index is built,
-- nothing can be removed from that day.
CREATE FUNCTION rota.index_days(moment timestamptz DEFAULT now()) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    days text[];
BEGIN
    -- Only the owner of the days may; and one at a time is enough.
    IF NOT pg_has_role((SELECT c.relowner FROM pg_class AS c WHERE c.oid = 'rota.finished_jobs'::regclass), 'USAGE')
       OR NOT pg_try_advisory_xact_lock(hashtextextended('rota.index_days', 0)) THEN
        RETURN 0;
    END IF;
    SELECT array_agg(child.relname ORDER BY child.relname DESC) INTO days
    FROM pg_inherits AS i JOIN pg_class AS child ON child.oid = i.inhrelid
    WHERE i.inhparent = 'rota.finished_jobs'::regclass AND child.relname ~ '^finished_jobs_[0-9]+$'
      -- A little after midnight somebody may still settle into the day before.
      AND to_date(substring(child.relname FROM 15), 'YYYYMMDD')
          < ((moment - interval '10 minutes') AT TIME ZONE 'UTC')::date
      AND to_regclass(format('rota.%I', child.relname || '_queue')) IS NULL;
    IF days IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM rota.index_day(days[1], true);
    RETURN cardinality(days);
END
$$;

-- Make the days of finished jobs from yesterday to `ahead` days after `moment`, each with its indexes and with the rights
-- that roles have on all finished jobs: the purge reads and empties a day by its own name.
CREATE FUNCTION rota.open_days(moment timestamptz DEFAULT now(), ahead integer DEFAULT 7)
RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    day timestamp;
    name text;
    given record;
    made integer := 0;
BEGIN
    FOR step IN -1..ahead LOOP
        day := date_trunc('day', moment AT TIME ZONE 'UTC') + make_interval(days => step);
        name := 'finished_jobs_' || to_char(day, 'YYYYMMDD');
        IF to_regclass('rota.' || name) IS NULL THEN
            -- One maker at a time; the second finds it made. (It must look with a query of its own: what
            -- to_regclass() remembers is older than the lock.)
            PERFORM pg_advisory_xact_lock(hashtextextended('rota.make_days', 0));
            IF NOT EXISTS (SELECT FROM pg_class c
                           WHERE c.relnamespace = 'rota'::regnamespace AND c.relname = name) THEN
                EXECUTE format('CREATE TABLE rota.%I (LIKE rota.finished_jobs INCLUDING ALL)', name);
                PERFORM rota.index_day(name, false);
                FOR given IN
                    SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS role,
                           string_agg(a.privilege_type, ', ') AS rights
                    FROM pg_class AS c, aclexplode(c.relacl) AS a
                    WHERE c.oid = 'rota.finished_jobs'::regclass AND a.grantee <> c.relowner
                    GROUP BY a.grantee
                LOOP
                    EXECUTE format('GRANT %s ON rota.%I TO %s', given.rights, name, given.role);
                END LOOP;
                EXECUTE format('ALTER TABLE rota.finished_jobs ATTACH PARTITION rota.%I FOR VALUES FROM (%L) TO (%L)',
                    name, day AT TIME ZONE 'UTC', (day + interval '1 day') AT TIME ZONE 'UTC');
                made := made + 1;
            END IF;
        END IF;
    END LOOP;
    RETURN made;
END
$$;

-- What workers from before version 10 ask for, when a job finds no day, and first in each round of their janitor. That
-- would go on to drop days and dead jobs which a policy keeps: where one is set, and no day is missing, it ends here.
CREATE OR REPLACE FUNCTION rota.make_days(moment timestamptz DEFAULT now(), ahead integer DEFAULT 7)
RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF to_regclass('rota.finished_jobs_' || to_char(moment AT TIME ZONE 'UTC', 'YYYYMMDD')) IS NOT NULL
       AND EXISTS (SELECT FROM rota.retention) THEN
        RAISE EXCEPTION 'rota: retention policies are set, and the janitor of this older worker does not know them; '
            'restart it with the new release (its jobs go on meanwhile)'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'In SQL: SELECT rota.open_days();';
    END IF;
    RETURN rota.open_days(moment, ahead);
END
$$;

-- Dead letters by what people ask for, and counted without the rows themselves; only a death and a review pay. What is
-- missing of these indexes, or was left half made.
CREATE FUNCTION rota.dead_indexes() RETURNS TABLE (name text, definition text, broken boolean)
LANGUAGE sql STABLE AS $$
    SELECT wanted.name, wanted.definition, i.indexrelid IS NOT NULL
    FROM (VALUES ('dead_jobs_task', '(task, id) INCLUDE (review)'),
                 ('dead_jobs_queue', '(queue, id) INCLUDE (review)'),
                 ('dead_jobs_class', '(error_class, id) INCLUDE (review)'),
                 ('dead_jobs_tenant', '(tenant, id) INCLUDE (review) WHERE tenant IS NOT NULL'),
                 ('dead_jobs_tags', 'USING gin (tags) WHERE tags IS NOT NULL')) AS wanted (name, definition)
    LEFT JOIN pg_class AS c ON c.relnamespace = 'rota'::regnamespace AND c.relname = wanted.name
    LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
    WHERE i.indisvalid IS NOT TRUE
$$;

-- Of few dead letters it is the matter of a moment. With many, those who die or are reviewed would wait until all is
-- committed: the janitor makes them then, without keeping anybody waiting.
DO $$
DECLARE
    missing record;
BEGIN
    IF (SELECT count(*) FROM (SELECT FROM rota.dead_jobs LIMIT 10001) AS looked) <= 10000 THEN
        FOR missing IN SELECT * FROM rota.dead_indexes() LOOP
            EXECUTE format('CREATE INDEX %I ON rota.dead_jobs ', missing.name) || missing.definition;
        END LOOP;
    END IF;
END
$$;

-- The front of each queue's line: when its oldest waiting job is or was due. Exact, and never reads the backlog.
CREATE OR REPLACE VIEW rota.heads AS
WITH RECURSIVE plain AS (
    (SELECT queue, priority, run_at FROM rota.jobs
     WHERE state = 'pending' AND gate IS NULL AND parked IS NULL
     ORDER BY queue, priority, run_at, id LIMIT 1)
    UNION ALL
    SELECT step.queue, step.priority, step.run_at
    FROM plain, LATERAL (
        SELECT queue, priority, run_at FROM rota.jobs
        WHERE state = 'pending' AND gate IS NULL AND parked IS NULL
          AND (queue, priority) > (plain.queue, plain.priority)
        ORDER BY queue, priority, run_at, id LIMIT 1) AS step
), gated AS (
    (SELECT queue, priority, run_at FROM rota.jobs
     WHERE state = 'pending' AND gate IS NOT NULL AND parked IS NULL
     ORDER BY queue, priority, run_at, id LIMIT 1)
    UNION ALL
    SELECT step.queue, step.priority, step.run_at
    FROM gated, LATERAL (
        SELECT queue, priority, run_at FROM rota.jobs
        WHERE state = 'pending' AND gate IS NOT NULL AND parked IS NULL
          AND (queue, priority) > (gated.queue, gated.priority)
        ORDER BY queue, priority, run_at, id LIMIT 1) AS step
)
SELECT queue, min(run_at) AS oldest FROM (SELECT * FROM plain UNION ALL SELECT * FROM gated) AS front GROUP BY queue;

-- Views that count look at 100,000 unfinished and 100,000 dead jobs at most: their price is that of a small backlog.
-- What runs is counted apart, and exactly: there is no more of it than slots. The views that count nothing are in 0008.

-- What is unfinished or dead, by type and status; and what completed in the last hour, from the minutes.
CREATE OR REPLACE VIEW rota_lipas.job_queue_health AS
SELECT j.task AS type,
       CASE WHEN j.state = 'pending' AND j.failed THEN 'failed'
            WHEN j.state IN ('pending', 'blocked') THEN 'pending'
            WHEN j.state = 'held' THEN 'paused'
            ELSE 'processing' END AS status,
       sum(j.jobs)::bigint AS count, min(j.oldest_created) AS oldest_created_at,
       round(extract(epoch FROM now() - min(j.oldest_due)) / 60, 1) AS oldest_minutes
FROM (SELECT looked.task, looked.state, looked.error_message IS NOT NULL AND looked.attempt > 0 AS failed,
             count(*) AS jobs, min(looked.created_at) AS oldest_created,
             min(looked.run_at) FILTER (WHERE looked.run_at <= now()) AS oldest_due
      FROM ((SELECT task, state, error_message, attempt, created_at, run_at FROM rota.jobs
             WHERE state <> 'running' LIMIT 100000)
            UNION ALL
            SELECT task, state, error_message, attempt, created_at, run_at FROM rota.jobs
            WHERE state = 'running') AS looked
      GROUP BY 1, 2, 3) AS j
GROUP BY 1, 2
UNION ALL
SELECT d.task, 'dead', count(*), min(d.created_at), round(extract(epoch FROM now() - min(d.finished_at)) / 60, 1)
FROM (SELECT task, created_at, finished_at FROM rota.dead_jobs LIMIT 100000) AS d
GROUP BY 1
UNION ALL
SELECT m.task, 'completed', sum(m.jobs)::bigint, NULL, NULL
FROM rota.minutes AS m
WHERE m.minute > now() - interval '1 hour' AND m.ending IN ('completed', 'partial')
GROUP BY 1;

CREATE OR REPLACE VIEW rota_lipas.queue_stats AS
SELECT count(*) FILTER (WHERE j.state IN ('pending', 'blocked') AND NOT (j.error_message IS NOT NULL AND j.attempt > 0))
           AS pending,
       (SELECT count(*) FROM rota.jobs AS r WHERE r.state = 'running') AS processing,
       count(*) FILTER (WHERE j.state = 'pending' AND j.error_message IS NOT NULL AND j.attempt > 0) AS failed,
       coalesce((SELECT floor(extract(epoch FROM now() - min(h.oldest)) / 60) FROM rota.heads AS h
                 WHERE h.oldest <= now()), 0)::bigint AS oldest_pending_minutes
FROM (SELECT state, error_message, attempt FROM rota.jobs WHERE state <> 'running' LIMIT 100000) AS j;

-- Which type fills memory: the payloads of what is unfinished.
CREATE OR REPLACE VIEW rota_lipas.payload_sizes AS
SELECT j.task AS type, count(*) AS jobs, round(avg(j.size)) AS average_bytes, max(j.size) AS largest_bytes
FROM (SELECT task, pg_column_size(payload) AS size FROM rota.jobs LIMIT 100000) AS j
GROUP BY 1;

CREATE OR REPLACE VIEW rota_docverse.backlog_by_kind AS
SELECT j.task AS kind, count(*) AS queued, min(j.created_at) AS oldest
FROM (SELECT task, state, created_at FROM rota.jobs LIMIT 100000) AS j WHERE j.state IN ('pending', 'blocked')
GROUP BY 1;

-- From all_jobs with the condition outside: a branch with one of its own would be read whole before it is sorted.
CREATE OR REPLACE VIEW rota_lipas.job_metrics AS
SELECT j.id, j.task AS job_type, CASE j.state WHEN 'dead' THEN 'dead' ELSE 'completed' END AS status,
       round(extract(epoch FROM j.finished_at - j.claimed_at) * 1000)::bigint AS duration_ms,
       round(extract(epoch FROM j.claimed_at - j.run_at) * 1000)::bigint AS queue_time_ms,
       j.finished_at AS recorded_at
FROM rota.all_jobs AS j
WHERE j.state IN ('completed', 'partial', 'dead');

-- Attempts that failed in the last hour, by type: of the newest 5,000. They are found by their time first, and only
-- then their jobs, by key: together the server would rather read every attempt there is.
CREATE OR REPLACE VIEW rota_lipas.recent_failures AS
WITH latest AS MATERIALIZED (
    SELECT a.job_id, a.ended_at, a.message FROM rota.failed_attempts AS a
    WHERE a.ended_at > now() - interval '1 hour'
    ORDER BY a.ended_at DESC LIMIT 5000
)
SELECT j.task AS type, count(*) AS failures, max(a.ended_at) AS latest_failure,
       (array_agg(a.message ORDER BY a.ended_at DESC))[1] AS latest_error
FROM latest AS a JOIN rota.all_jobs AS j ON j.id = a.job_id
GROUP BY 1;

-- What the minutes of a whole hour come to, so that a day or a fortnight is read as few rows. Written once, when
-- no session may change a minute of that hour any more; the minutes stay.
CREATE TABLE rota.hours (
    hour        timestamptz NOT NULL,
    queue       text NOT NULL,
    task        text NOT NULL,
    ending      text NOT NULL,
    jobs        bigint NOT NULL,
    wait_sum    float8 NOT NULL,
    run_sum     float8 NOT NULL,
    waits       smallint[] NOT NULL,
    wait_counts bigint[] NOT NULL,
    runs        smallint[] NOT NULL,
    run_counts  bigint[] NOT NULL,
    PRIMARY KEY (hour, queue, task, ending)
);
CREATE TABLE rota.tenant_hours (
    hour    timestamptz NOT NULL,
    tenant  text NOT NULL,
    jobs    bigint NOT NULL,
    faults  bigint NOT NULL,
    run_sum float8 NOT NULL,
    PRIMARY KEY (hour, tenant)
);
CREATE TABLE rota.lane_hours (
    hour  timestamptz NOT NULL,
    lane  text NOT NULL,
    slots bigint NOT NULL,
    busy  bigint NOT NULL,
    PRIMARY KEY (hour, lane)
);
-- Every hour before this moment has been added up. One row, and who holds it adds up.
CREATE TABLE rota.hours_until (
    until timestamptz NOT NULL
);
CREATE UNIQUE INDEX hours_until_once ON rota.hours_until ((true));
INSERT INTO rota.hours_until VALUES ('-infinity');

-- Add up hours that were over at `upto`, and drop those that are too old; whether some are left. Six hours with work at
-- most, so that a fortnight, the first time or after a long rest, is done in steps that each come to an end.
CREATE FUNCTION rota.sum_hours(upto timestamptz, kept_from timestamptz) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    since timestamptz;
    over timestamptz := date_trunc('hour', upto, 'UTC');
    till timestamptz;
BEGIN
    SELECT h.until INTO since FROM rota.hours_until AS h FOR UPDATE;
    DELETE FROM rota.hours AS old WHERE old.hour < kept_from;
    DELETE FROM rota.tenant_hours AS old WHERE old.hour < kept_from;
    DELETE FROM rota.lane_hours AS old WHERE old.hour < kept_from;
    IF since >= over THEN
        RETURN false;
    END IF;
    SELECT least(date_trunc('hour', min(oldest.minute), 'UTC') + interval '6 hours', over) INTO till
    FROM (SELECT min(m.minute) AS minute FROM rota.minutes AS m WHERE m.minute >= since
          UNION ALL SELECT min(m.minute) FROM rota.tenant_minutes AS m WHERE m.minute >= since
          UNION ALL SELECT min(m.minute) FROM rota.lane_minutes AS m WHERE m.minute >= since) AS oldest;
    WITH mine AS MATERIALIZED (
        SELECT date_trunc('hour', m.minute, 'UTC') AS hour, m.* FROM rota.minutes AS m
        WHERE m.minute >= since AND m.minute < till
    ), waited AS (
        SELECT hour, queue, task, ending, array_agg(place ORDER BY place) AS places,
               array_agg(n ORDER BY place) AS counts
        FROM (SELECT hour, queue, task, ending, h.place, sum(h.n)::bigint AS n
              FROM mine, unnest(mine.waits, mine.wait_counts) AS h (place, n) GROUP BY 1, 2, 3, 4, 5) AS counted
        GROUP BY 1, 2, 3, 4
    ), ran AS (
        SELECT hour, queue, task, ending, array_agg(place ORDER BY place) AS places,
               array_agg(n ORDER BY place) AS counts
        FROM (SELECT hour, queue, task, ending, h.place, sum(h.n)::bigint AS n
              FROM mine, unnest(mine.runs, mine.run_counts) AS h (place, n) GROUP BY 1, 2, 3, 4, 5) AS counted
        GROUP BY 1, 2, 3, 4
    )
    INSERT INTO rota.hours (hour, queue, task, ending, jobs, wait_sum, run_sum, waits, wait_counts, runs, run_counts)
    SELECT s.hour, s.queue, s.task, s.ending, s.jobs, s.wait_sum, s.run_sum,
        coalesce(w.places, '{}'), coalesce(w.counts, '{}'), coalesce(r.places, '{}'), coalesce(r.counts, '{}')
    FROM (SELECT hour, queue, task, ending, sum(jobs)::bigint AS jobs, sum(wait_sum) AS wait_sum,
                 sum(run_sum) AS run_sum
          FROM mine GROUP BY 1, 2, 3, 4) AS s
    LEFT JOIN waited AS w USING (hour, queue, task, ending)
    LEFT JOIN ran AS r USING (hour, queue, task, ending);
    INSERT INTO rota.tenant_hours (hour, tenant, jobs, faults, run_sum)
    SELECT date_trunc('hour', m.minute, 'UTC'), m.tenant, sum(m.jobs), sum(m.faults), sum(m.run_sum)
    FROM rota.tenant_minutes AS m WHERE m.minute >= since AND m.minute < till GROUP BY 1, 2;
    INSERT INTO rota.lane_hours (hour, lane, slots, busy)
    SELECT date_trunc('hour', m.minute, 'UTC'), m.lane, sum(m.slots), sum(m.busy)
    FROM rota.lane_minutes AS m WHERE m.minute >= since AND m.minute < till GROUP BY 1, 2;
    UPDATE rota.hours_until SET until = till;
    RETURN till < over;
END
$$;

-- As in 0006; and tokens and retention are the owner's: who could write them would make himself a manager, or end a legal
-- hold, without a word in the audit. That a token was used is noted by whoever checks it.
CREATE OR REPLACE FUNCTION rota.grant_to(role_name name) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA rota TO %I', role_name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rota TO %I', role_name);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rota TO %I', role_name);
    EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE ON rota.audit FROM %I', role_name);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON rota.migrations FROM %I', role_name);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON rota.tokens, rota.retention FROM %I', role_name);
    EXECUTE format('GRANT UPDATE (last_used_at) ON rota.tokens TO %I', role_name);
END
$$;

-- The days that are there and empty: those to come, and all of a new database. A day with jobs in it is left to the
-- janitor, once it is over: nobody who settles waits for an index. At the end, because today's may be one of them.
DO $$
DECLARE
    name text;
    jobs boolean;
BEGIN
    FOR name IN
        SELECT child.relname FROM pg_inherits AS i JOIN pg_class AS child ON child.oid = i.inhrelid
        WHERE i.inhparent = 'rota.finished_jobs'::regclass AND child.relname ~ '^finished_jobs_[0-9]+$'
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM rota.%I)', name) INTO jobs;
        IF NOT jobs THEN
            PERFORM rota.index_day(name, false);
        END IF;
    END LOOP;
END
$$;
