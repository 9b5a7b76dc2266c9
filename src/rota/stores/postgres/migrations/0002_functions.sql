-- Functions: storing jobs with keys in one statement (any language, any
-- transaction), and making days of finished jobs.

-- A time-ordered id, for servers that have no uuidv7() of their own.
CREATE FUNCTION rota.new_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(
        set_byte(set_byte(
            overlay(uuid_send(gen_random_uuid())
                    PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                    FROM 1 FOR 6),
            6, (get_byte(uuid_send(gen_random_uuid()), 6) & 15) | 112),
            8, (get_byte(uuid_send(gen_random_uuid()), 8) & 63) | 128),
        'hex')::uuid
$$;

-- Tell workers that something may be due. A hint: nothing depends on its arrival.
-- `w` names a (queue, priority) with plain jobs, `g` one with gated jobs. While
-- the server's queue of notices fills up (somebody listens and sits in a
-- transaction) none is sent: in a full queue it would fail the caller's commit.
CREATE FUNCTION rota.hint(queue text, priority smallint, gated boolean) RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT pg_notify('rota', CASE WHEN gated THEN 'g:' ELSE 'w:' END || priority || ':' || left(queue, 7000))
    WHERE pg_notification_queue_usage() < 0.5
$$;

-- The name of a unique key among all tasks' keys; the length keeps `a:b` + `c` and `a` + `b:c` apart.
CREATE FUNCTION rota.unique_name(task text, unique_key text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT length(task) || ':' || task || ':' || unique_key
$$;

-- Store jobs, given as a JSON array of objects, with their keys; one answer a
-- job: created, duplicate, conflict, replaced, rescheduled, merged or rejected.
--
-- Duplicates are answers: nothing here aborts the caller's transaction. All
-- keys are locked first, in one order, so that two callers cannot deadlock;
-- each statement after that sees what the former holders committed. A holder
-- that has not started is locked before it decides anything, so that no worker
-- starts it between the look and the caller's commit.
CREATE FUNCTION rota.enqueue_jobs(jobs jsonb, at timestamptz DEFAULT NULL)
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
           OR EXISTS (SELECT FROM rota.audit a WHERE a.job_id = new_job AND a.action = 'delete') THEN
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

-- Store one job from SQL, from any language or trigger, by the rules that its
-- task was published with. Answers the id of the job that stands for it.
CREATE FUNCTION rota.enqueue(
    task text, payload jsonb DEFAULT '{}', queue text DEFAULT NULL, priority integer DEFAULT NULL,
    delay interval DEFAULT NULL, run_at timestamptz DEFAULT NULL, tenant text DEFAULT NULL, subject text DEFAULT NULL,
    key text DEFAULT NULL, unique_key text DEFAULT NULL, serial text DEFAULT NULL, correlation_id text DEFAULT NULL,
    parent_id uuid DEFAULT NULL, tags text[] DEFAULT NULL, created_by text DEFAULT NULL, external_id text DEFAULT NULL,
    deadline interval DEFAULT NULL, max_attempts integer DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    known rota.tasks;
    answer record;
    gate text;
BEGIN
    SELECT * INTO known FROM rota.tasks t WHERE t.name = enqueue.task;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'rota: no task named % is published', quote_literal(enqueue.task)
            USING ERRCODE = 'no_data_found',
                  HINT = 'Start a worker that knows it once, or check the name: SELECT name FROM rota.tasks.';
    END IF;
    IF coalesce(jsonb_typeof(enqueue.payload), 'null') <> 'object' THEN
        RAISE EXCEPTION 'rota: the payload of % must be a JSON object of its arguments, not %',
            quote_literal(enqueue.task), coalesce(jsonb_typeof(enqueue.payload), 'null') USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Measured as text: what comes from a table may be compressed.
    IF octet_length(enqueue.payload::text) > 262144 THEN
        RAISE EXCEPTION 'rota: the payload of % is % bytes; the limit is 262144',
            quote_literal(enqueue.task), octet_length(enqueue.payload::text)
            USING ERRCODE = 'program_limit_exceeded', HINT = 'Store the content elsewhere and pass a reference to it.';
    END IF;
    gate := CASE
        WHEN enqueue.serial IS NOT NULL THEN 'serial:' || coalesce(enqueue.tenant, '') || ':' || enqueue.serial
        WHEN known.gate_path IS NOT NULL
            THEN 'serial:' || coalesce(enqueue.tenant, '') || ':' || (enqueue.payload ->> known.gate_path)
    END;
    SELECT e.id, e.stored INTO answer FROM rota.enqueue_jobs(jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
        'task', enqueue.task, 'queue', coalesce(enqueue.queue, known.queue),
        'priority', coalesce(enqueue.priority, known.priority),
        'max_attempts', coalesce(enqueue.max_attempts, (known.retry ->> 'attempts')::integer),
        'timeout', known.timeout, 'delay', extract(epoch FROM enqueue.delay), 'run_at', enqueue.run_at,
        'tenant', enqueue.tenant, 'subject', enqueue.subject, 'key', enqueue.key, 'unique_key', enqueue.unique_key,
        'unique_scope', CASE WHEN enqueue.unique_key IS NOT NULL THEN 'started' END,
        'gate', gate, 'correlation_id', enqueue.correlation_id, 'parent_id', enqueue.parent_id,
        'tags', to_jsonb(enqueue.tags), 'created_by', coalesce(enqueue.created_by, 'sql:' || current_user),
        'external_id', enqueue.external_id, 'deadline_in', extract(epoch FROM enqueue.deadline),
        'category', known.category, 'payload_version', known.payload_version
    )) || jsonb_build_object('payload', enqueue.payload))) AS e;
    IF answer.stored = 'conflict' THEN
        RAISE EXCEPTION 'rota: the key % belongs to job %, which was enqueued with other arguments',
            quote_literal(enqueue.key), answer.id
            USING ERRCODE = 'unique_violation', HINT = 'Use another key for other work.';
    END IF;
    RETURN answer.id;
END
$$;

-- Make the days of finished jobs from yesterday to `ahead` days after `moment`.
-- A day is built apart and then attached: that waits for no reader or writer.
CREATE FUNCTION rota.make_days(moment timestamptz DEFAULT now(), ahead integer DEFAULT 7)
RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    day timestamp;
    name text;
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
                EXECUTE format('ALTER TABLE rota.finished_jobs ATTACH PARTITION rota.%I FOR VALUES FROM (%L) TO (%L)',
                    name, day AT TIME ZONE 'UTC', (day + interval '1 day') AT TIME ZONE 'UTC');
                made := made + 1;
            END IF;
        END IF;
    END LOOP;
    RETURN made;
END
$$;

SELECT rota.make_days();
