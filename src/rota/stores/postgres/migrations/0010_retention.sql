-- Retention as data, and the archive: what is left of jobs whose time is over.
--
-- A job that retention lets go is moved: its row is deleted and its summary
-- inserted in one statement, so that it is either whole or archived, at any
-- moment. A day of finished jobs is dropped when nothing is left in it.

-- How long ended jobs are kept, by state, task and tenant (none: any). Of those that fit a job the heaviest counts:
-- a tenant is more specific than a task, and a task than a state.
CREATE TABLE rota.retention (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state  text CHECK (state IN ('completed', 'partial', 'cancelled', 'dead', 'archived')),
    task   text,
    tenant text,
    keep   float8 CHECK (keep >= 0 AND keep < 1e10), -- seconds; none: for ever
    weight smallint GENERATED ALWAYS AS (CASE WHEN tenant IS NULL THEN 0 ELSE 4 END
                                         + CASE WHEN task IS NULL THEN 0 ELSE 2 END
                                         + CASE WHEN state IS NULL THEN 0 ELSE 1 END) STORED,
    reason text,
    set_by text NOT NULL,
    set_at timestamptz NOT NULL,
    CHECK (state IS DISTINCT FROM 'archived' OR (task IS NULL AND tenant IS NULL))
);
CREATE UNIQUE INDEX retention_scope ON rota.retention (coalesce(state, ''), coalesce(task, ''), coalesce(tenant, ''));

-- When a day that the janitor went through may have something for it again, by the rules that held then.
CREATE TABLE rota.retention_days (
    day      date PRIMARY KEY,
    next_due timestamptz NOT NULL,
    rules    text NOT NULL
);

-- All policies and the default as one short text: another one, and every day is looked at again.
CREATE FUNCTION rota.retention_rules(keep float8) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT md5(coalesce(string_agg(concat_ws('|', p.state, p.task, p.tenant, p.weight, p.keep), chr(10) ORDER BY p.id), '')
               || retention_rules.keep)
    FROM rota.retention AS p
$$;

-- Whose turn a chore is that one at a time is enough for. A lease, because nothing here may depend on a session.
CREATE TABLE rota.turns (
    chore  text PRIMARY KEY,
    holder uuid NOT NULL,
    until  timestamptz NOT NULL
) WITH (fillfactor = 50);

-- One row a job, without its arguments and its result. By month of archiving, dropped a year later.
CREATE TABLE rota.archived_jobs (
    id             uuid NOT NULL,
    parent_id      uuid,
    created_at     timestamptz NOT NULL,
    finished_at    timestamptz NOT NULL,
    archived_at    timestamptz NOT NULL,
    waited         real, -- seconds that the last attempt was due before it began
    ran            real, -- seconds that the last attempt took
    attempts       smallint NOT NULL,
    losses         smallint NOT NULL,
    state          text NOT NULL, -- how it ended
    task           text NOT NULL,
    queue          text NOT NULL,
    tenant         text,
    category       text,
    subject        text,
    external_id    text,
    correlation_id text,
    created_by     text,
    error_class    text,
    review         text,
    reviewed_by    text,
    PRIMARY KEY (id, archived_at)
) PARTITION BY RANGE (archived_at);

-- Make the month of the archive that `moment` is in, and the next one.
CREATE FUNCTION rota.make_months(moment timestamptz DEFAULT now()) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    month timestamp;
    name text;
    made integer := 0;
BEGIN
    FOR step IN 0..1 LOOP
        month := date_trunc('month', moment AT TIME ZONE 'UTC') + make_interval(months => step);
        name := 'archived_jobs_' || to_char(month, 'YYYYMM');
        IF to_regclass('rota.' || name) IS NULL THEN
            -- One maker at a time; the second finds it made, by a query of its own.
            PERFORM pg_advisory_xact_lock(hashtextextended('rota.make_months', 0));
            IF NOT EXISTS (SELECT FROM pg_class c
                           WHERE c.relnamespace = 'rota'::regnamespace AND c.relname = name) THEN
                EXECUTE format('CREATE TABLE rota.%I (LIKE rota.archived_jobs INCLUDING ALL)', name);
                EXECUTE format('ALTER TABLE rota.archived_jobs ATTACH PARTITION rota.%I FOR VALUES FROM (%L) TO (%L)',
                    name, month AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC');
                made := made + 1;
            END IF;
        END IF;
    END LOOP;
    RETURN made;
END
$$;

SELECT rota.make_months();

-- Drop the months of the archive that were over at `before`; how many. Who reads the archive just then is waited for
-- a moment only: the next round finds what is left.
CREATE FUNCTION rota.drop_months(before timestamptz) RETURNS integer LANGUAGE plpgsql VOLATILE
SET lock_timeout = '500ms' AS $$
DECLARE
    name text;
    dropped integer := 0;
BEGIN
    IF NOT pg_has_role((SELECT c.relowner FROM pg_class AS c WHERE c.oid = 'rota.archived_jobs'::regclass), 'USAGE') THEN
        RETURN 0; -- it is left to the owner
    END IF;
    FOR name IN
        SELECT child.relname FROM pg_inherits AS i JOIN pg_class AS child ON child.oid = i.inhrelid
        WHERE i.inhparent = 'rota.archived_jobs'::regclass AND child.relname ~ '^archived_jobs_[0-9]+$'
          AND (to_date(substring(child.relname FROM 15), 'YYYYMM') + interval '1 month')::timestamp AT TIME ZONE 'UTC'
              <= before
        ORDER BY 1
    LOOP
        EXECUTE format('DROP TABLE rota.%I', name);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
EXCEPTION WHEN lock_not_available OR undefined_table THEN
    RETURN 0;
END
$$;

-- Drop a day that was detached, if nothing is left in it; whether it was. One with jobs in it (somebody detached it by
-- hand) is put back, so that they are archived first.
CREATE FUNCTION rota.drop_day(name text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    its_day timestamp := to_date(substring(name FROM 15), 'YYYYMMDD');
    jobs boolean;
BEGIN
    EXECUTE format('LOCK TABLE rota.%I IN ACCESS EXCLUSIVE MODE', name);
    EXECUTE format('SELECT EXISTS (SELECT FROM rota.%I)', name) INTO jobs;
    IF jobs THEN
        EXECUTE format('ALTER TABLE rota.finished_jobs ATTACH PARTITION rota.%I FOR VALUES FROM (%L) TO (%L)',
            name, its_day AT TIME ZONE 'UTC', (its_day + interval '1 day') AT TIME ZONE 'UTC');
    ELSE
        EXECUTE format('DROP TABLE rota.%I', name);
    END IF;
    DELETE FROM rota.retention_days AS looked WHERE looked.day = its_day::date;
    RETURN NOT jobs;
END
$$;

-- When a job may go that ended then and is kept so long. Whole days count from the end of the day on which it ended,
-- so that a day's jobs go together.
CREATE FUNCTION rota.let_go_at(ended timestamptz, keep float8, exact boolean) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN keep = 'Infinity' THEN 'infinity'
        WHEN exact OR keep < 86400 OR keep / 86400 <> floor(keep / 86400) THEN ended + make_interval(secs => keep)
        ELSE (date_trunc('day', ended AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC'
             + make_interval(secs => keep)
    END
$$;

-- Every id that is known, with its state: `archived` when only a summary is left, and how the job ended then.
CREATE VIEW rota.known_jobs AS
SELECT j.id, j.state, j.task, j.queue, j.tenant, j.created_at, j.finished_at,
       CASE WHEN j.state IN ('completed', 'partial', 'cancelled', 'dead') THEN j.state END AS ended,
       NULL::timestamptz AS archived_at
FROM rota.all_jobs AS j
UNION ALL
SELECT o.id, 'archived', o.task, o.queue, o.tenant, o.created_at, o.finished_at, o.state, o.archived_at
FROM rota.archived_jobs AS o;

-- Whether a job with this id can be in the archive already. Ids carry their time, and a job is archived a minute after
-- its end at the earliest: a new one is not looked for.
CREATE FUNCTION rota.may_be_archived(id uuid, moment timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT substring(id::text FROM 15 FOR 1) <> '7'
        OR ('x' || substring(id::text FROM 1 FOR 8) || substring(id::text FROM 10 FOR 4))::bit(48)::bigint
           < extract(epoch FROM moment - interval '1 minute') * 1000
$$;

-- As in 0002; and an id that was archived is not stored again.
CREATE OR REPLACE FUNCTION rota.enqueue_jobs(jobs jsonb, at timestamptz DEFAULT NULL)
RETURNS TABLE ("position" integer, id uuid, stored text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    moment timestamptz := coalesce(at, now());
    wanted record;
    held record;
    holder record;
    given jsonb;
    hash text;
    outcome text;
    new_job uuid;
    due timestamptz;
    place integer := 0;
    hints text[] := '{}';
    spot text;
BEGIN
    FOR wanted IN
        SELECT DISTINCT k.kind, coalesce(j.value ->> 'tenant', '') AS tenant, k.key
        FROM jsonb_array_elements(enqueue_jobs.jobs) AS j,
             LATERAL (VALUES ('idempotency', j.value ->> 'key'),
                             ('unique', rota.unique_name(j.value ->> 'task', j.value ->> 'unique_key'))) AS k (kind, key)
        WHERE k.key IS NOT NULL
        ORDER BY 1, 2, 3
    LOOP
        -- DO UPDATE locks the row; DO NOTHING would not, and the janitor could take it away.
        INSERT INTO rota.keys AS k (kind, tenant, key) VALUES (wanted.kind, wanted.tenant, wanted.key)
        ON CONFLICT (kind, tenant, key) DO UPDATE SET job_id = k.job_id;
    END LOOP;

    FOR given IN SELECT j.value FROM jsonb_array_elements(enqueue_jobs.jobs) AS j LOOP
        place := place + 1;
        new_job := coalesce((given ->> 'id')::uuid, rota.new_id());
        outcome := NULL;
        due := coalesce((given ->> 'run_at')::timestamptz,
                        moment + make_interval(secs => coalesce((given ->> 'delay')::float8, 0)));

        IF EXISTS (SELECT FROM rota.jobs j WHERE j.id = new_job)
           OR EXISTS (SELECT FROM rota.finished_jobs f WHERE f.id = new_job)
           OR EXISTS (SELECT FROM rota.dead_jobs d WHERE d.id = new_job)
           OR EXISTS (SELECT FROM rota.audit a WHERE a.job_id = new_job AND a.action = 'delete')
           OR (given ? 'id' AND rota.may_be_archived(new_job, moment)
               AND EXISTS (SELECT FROM rota.archived_jobs o WHERE o.id = new_job)) THEN
            -- The same enqueue again, after a lost answer.
            "position" := place; id := new_job; stored := 'created';
            RETURN NEXT;
            CONTINUE;
        END IF;

        IF given ? 'key' THEN
            hash := md5((given ->> 'task') || coalesce(given -> 'payload', '{}')::text);
            SELECT k.job_id, k.payload_hash, k.until INTO held FROM rota.keys k
            WHERE k.kind = 'idempotency' AND k.tenant = coalesce(given ->> 'tenant', '') AND k.key = given ->> 'key';
            IF held.job_id IS NOT NULL
               AND (held.until > moment OR EXISTS (SELECT FROM rota.jobs j WHERE j.id = held.job_id)) THEN
                outcome := CASE WHEN held.payload_hash = hash THEN 'duplicate' ELSE 'conflict' END;
                "position" := place; id := held.job_id; stored := outcome;
                RETURN NEXT;
                CONTINUE;
            END IF;
        END IF;

        IF given ? 'unique_key' THEN
            SELECT k.job_id, k.scope, k.until INTO held FROM rota.keys k
            WHERE k.kind = 'unique' AND k.tenant = coalesce(given ->> 'tenant', '')
              AND k.key = rota.unique_name(given ->> 'task', given ->> 'unique_key');
            IF held.job_id IS NOT NULL THEN
                SELECT j.id, j.state INTO holder FROM rota.jobs j
                WHERE j.id = held.job_id AND j.state IN ('pending', 'blocked', 'held') FOR UPDATE;
                IF NOT FOUND THEN
                    -- It runs, or has ended: its worker must not wait for the caller's commit.
                    SELECT j.id, j.state INTO holder FROM rota.jobs j WHERE j.id = held.job_id;
                END IF;
                IF (held.scope = 'started' AND holder.state IN ('pending', 'blocked', 'held'))
                   OR (held.scope = 'finished' AND holder.id IS NOT NULL)
                   OR (held.scope = 'window' AND held.until > moment) THEN
                    outcome := 'duplicate';
                    IF coalesce(given ->> 'on_duplicate', 'keep') = 'reject' THEN
                        outcome := 'rejected';
                    ELSIF holder.state IN ('pending', 'blocked', 'held') THEN
                        CASE coalesce(given ->> 'on_duplicate', 'keep')
                            WHEN 'replace' THEN
                                outcome := 'replaced';
                                UPDATE rota.jobs j SET payload = coalesce(given -> 'payload', '{}'),
                                    version = j.version + 1, updated_at = moment WHERE j.id = held.job_id;
                            WHEN 'merge' THEN
                                outcome := 'merged';
                                UPDATE rota.jobs j SET payload = j.payload || coalesce(given -> 'payload', '{}'),
                                    version = j.version + 1, updated_at = moment WHERE j.id = held.job_id;
                            WHEN 'reschedule' THEN
                                outcome := 'rescheduled';
                                UPDATE rota.jobs j SET run_at = due,
                                    version = j.version + 1, updated_at = moment WHERE j.id = held.job_id;
                            ELSE
                                NULL;
                        END CASE;
                    END IF;
                    "position" := place; id := held.job_id; stored := outcome;
                    RETURN NEXT;
                    CONTINUE;
                END IF;
            END IF;
        END IF;

        INSERT INTO rota.jobs (
            id, task, payload, queue, priority, max_attempts, run_at, created_at, updated_at, deadline, timeout, tenant,
            subject, external_id, key, unique_key, unique_scope, gate, correlation_id, parent_id, tags, created_by,
            category, payload_version, headers, state)
        VALUES (
            new_job, given ->> 'task', coalesce(given -> 'payload', '{}'), coalesce(given ->> 'queue', 'default'),
            coalesce((given ->> 'priority')::smallint, 100), coalesce((given ->> 'max_attempts')::smallint, 5),
            due, moment, moment, moment + make_interval(secs => (given ->> 'deadline_in')::float8),
            (given ->> 'timeout')::real, given ->> 'tenant', given ->> 'subject', given ->> 'external_id',
            given ->> 'key', given ->> 'unique_key', given ->> 'unique_scope', given ->> 'gate',
            given ->> 'correlation_id', (given ->> 'parent_id')::uuid,
            (SELECT array_agg(t.value) FROM jsonb_array_elements_text(given -> 'tags') AS t),
            given ->> 'created_by', given ->> 'category', given ->> 'payload_version', given -> 'headers',
            CASE WHEN (given ->> 'held')::boolean THEN 'held' ELSE 'pending' END);

        IF given ? 'key' THEN
            UPDATE rota.keys k SET job_id = new_job, payload_hash = hash,
                until = moment + make_interval(secs => coalesce((given ->> 'key_window')::float8, 86400))
            WHERE k.kind = 'idempotency' AND k.tenant = coalesce(given ->> 'tenant', '') AND k.key = given ->> 'key';
        END IF;
        IF given ? 'unique_key' THEN
            UPDATE rota.keys k SET job_id = new_job, scope = coalesce(given ->> 'unique_scope', 'started'),
                until = moment + make_interval(secs => (given ->> 'unique_window')::float8)
            WHERE k.kind = 'unique' AND k.tenant = coalesce(given ->> 'tenant', '')
              AND k.key = rota.unique_name(given ->> 'task', given ->> 'unique_key');
        END IF;

        spot := concat_ws(':', given ? 'gate', coalesce(given ->> 'priority', '100'), coalesce(given ->> 'queue', 'default'));
        IF due <= moment + interval '10 seconds' AND NOT spot = ANY (hints) THEN
            hints := hints || spot;
            PERFORM rota.hint(coalesce(given ->> 'queue', 'default'),
                              coalesce((given ->> 'priority')::smallint, 100::smallint), given ? 'gate');
        END IF;
        "position" := place; id := new_job; stored := 'created';
        RETURN NEXT;
    END LOOP;
END
$$;
