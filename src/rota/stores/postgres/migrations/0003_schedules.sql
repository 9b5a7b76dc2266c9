-- Schedules: what ticks when, what operators changed of it, and which tick became which job.
--
-- A schedule's row is small and locked for moments only; `schedule_ticks` is
-- what makes a tick one job, also after that job has finished or is gone.

CREATE TABLE rota.schedules (
    name            text PRIMARY KEY,
    -- What the code said last.
    task            text NOT NULL,
    template        jsonb NOT NULL,
    timing          text NOT NULL,
    tz              text NOT NULL,
    jitter          float8 NOT NULL,
    overlap         text NOT NULL CHECK (overlap IN ('skip', 'allow')),
    misfire         text NOT NULL CHECK (misfire IN ('skip', 'last', 'all')),
    cap             integer NOT NULL CHECK (cap > 0),
    grace           float8 NOT NULL,
    windows         text[] NOT NULL,
    published_at    timestamptz NOT NULL,
    seen_at         timestamptz NOT NULL,
    -- What operators said instead; it wins until it is reset.
    edited_timing   text,
    edited_tz       text,
    edited_jitter   float8,
    edited_overlap  text CHECK (edited_overlap IN ('skip', 'allow')),
    edited_misfire  text CHECK (edited_misfire IN ('skip', 'last', 'all')),
    edited_cap      integer CHECK (edited_cap > 0),
    edited_grace    float8,
    edited_windows  text[],
    edited_queue    text,
    edited_priority smallint CHECK (edited_priority >= 0),
    edited_payload  jsonb,
    paused_at       timestamptz,
    paused_by       text,
    paused_because  text,
    -- How far it is.
    version         integer NOT NULL DEFAULT 1,
    cursor_at       timestamptz NOT NULL,
    open_jobs       uuid[] NOT NULL DEFAULT '{}',
    forgotten_until timestamptz
) WITH (fillfactor = 50);

CREATE TABLE rota.schedule_ticks (
    schedule text NOT NULL,
    tick     timestamptz NOT NULL,
    origin   text NOT NULL CHECK (origin IN ('tick', 'run', 'backfill')),
    outcome  text NOT NULL CHECK (outcome IN ('enqueued', 'duplicate', 'overlap')),
    job_id   uuid,
    at       timestamptz NOT NULL,
    PRIMARY KEY (schedule, tick)
);

-- Operators act on more than jobs: `about` names the rest, such as `schedule:nightly`.
ALTER TABLE rota.audit ALTER COLUMN job_id DROP NOT NULL, ADD COLUMN about text;
CREATE INDEX audit_about ON rota.audit (about) WHERE about IS NOT NULL;

-- Turn ticks of one schedule into jobs, each at most once, ever. One answer a tick:
-- enqueued, duplicate (its unique key belongs to another job), already, overlap,
-- early, forgotten (too old to know whether it ran), or stale (the schedule was
-- changed, paused or is being ticked by somebody else: look again).
--
-- Who ticks holds the schedule's row, and each statement after that sees what the
-- one before committed. It is one call, so nobody who stands still in the middle
-- keeps the others from ticking.
CREATE FUNCTION rota.fire(firing jsonb, audit jsonb DEFAULT NULL, at timestamptz DEFAULT NULL)
RETURNS TABLE (of_tick timestamptz, outcome text, job uuid)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    moment timestamptz := coalesce(at, now());
    by_hand boolean := firing ->> 'origin' <> 'tick';
    upto timestamptz := (firing ->> 'cursor')::timestamptz;
    mine rota.schedules;
    known record;
    given jsonb;
    opened uuid[];
    made integer := 0;
BEGIN
    IF by_hand THEN
        SELECT * INTO mine FROM rota.schedules s WHERE s.name = firing ->> 'schedule' FOR UPDATE;
    ELSE
        SELECT * INTO mine FROM rota.schedules s
        WHERE s.name = firing ->> 'schedule' AND s.version = (firing ->> 'version')::integer AND s.paused_at IS NULL
        FOR UPDATE SKIP LOCKED;
    END IF;
    IF NOT FOUND THEN
        RETURN QUERY SELECT (t.value ->> 'tick')::timestamptz, 'stale', NULL::uuid
                     FROM jsonb_array_elements(firing -> 'ticks') AS t;
        RETURN;
    END IF;
    opened := ARRAY (SELECT j.id FROM rota.jobs j WHERE j.id = ANY (mine.open_jobs) ORDER BY j.id);

    FOR given IN SELECT t.value FROM jsonb_array_elements(firing -> 'ticks') AS t LOOP
        of_tick := (given ->> 'tick')::timestamptz;
        job := NULL;
        SELECT t.job_id INTO known FROM rota.schedule_ticks t WHERE t.schedule = mine.name AND t.tick = of_tick;
        IF (given ->> 'due')::timestamptz > moment THEN
            outcome := 'early';
            upto := least(upto, of_tick - interval '1 microsecond');
        ELSIF known.job_id IS NOT NULL THEN
            -- The very same call again, after a lost answer, is answered as before.
            outcome := CASE WHEN known.job_id = (given -> 'job' ->> 'id')::uuid THEN 'enqueued' ELSE 'already' END;
            job := known.job_id;
        ELSIF of_tick <= mine.forgotten_until THEN
            outcome := 'forgotten';
        ELSIF NOT by_hand AND of_tick <= mine.cursor_at THEN
            outcome := 'already';
        ELSIF NOT by_hand AND coalesce(mine.edited_overlap, mine.overlap) = 'skip' AND cardinality(opened) > 0 THEN
            outcome := 'overlap';
            INSERT INTO rota.schedule_ticks AS t (schedule, tick, origin, outcome, job_id, at)
            VALUES (mine.name, of_tick, firing ->> 'origin', 'overlap', NULL, moment)
            ON CONFLICT ON CONSTRAINT schedule_ticks_pkey DO NOTHING;
        ELSE
            -- The key of the ticks decides, and only then there is a job.
            job := (given -> 'job' ->> 'id')::uuid;
            INSERT INTO rota.schedule_ticks AS t (schedule, tick, origin, outcome, job_id, at)
            VALUES (mine.name, of_tick, firing ->> 'origin', 'enqueued', job, moment)
            ON CONFLICT ON CONSTRAINT schedule_ticks_pkey DO UPDATE
            SET origin = excluded.origin, outcome = excluded.outcome, job_id = excluded.job_id, at = excluded.at
            WHERE t.job_id IS NULL;
            IF FOUND THEN
                made := made + 1;
                SELECT e.id, CASE e.stored WHEN 'created' THEN 'enqueued' ELSE 'duplicate' END INTO job, outcome
                FROM rota.enqueue_jobs(jsonb_build_array(given -> 'job'), moment) AS e;
                IF outcome = 'duplicate' THEN
                    UPDATE rota.schedule_ticks t SET outcome = fire.outcome, job_id = fire.job
                    WHERE t.schedule = mine.name AND t.tick = of_tick;
                END IF;
                IF firing ->> 'origin' <> 'backfill' THEN
                    opened := opened || job;
                END IF;
            ELSE
                outcome := 'already';
                job := NULL;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;

    UPDATE rota.schedules s
    SET cursor_at = greatest(s.cursor_at, upto), open_jobs = opened[greatest(1, cardinality(opened) - 99):]
    WHERE s.name = mine.name;
    IF made > 0 AND audit IS NOT NULL THEN
        INSERT INTO rota.audit (at, actor, action, about, reason, before, after)
        VALUES (moment, audit ->> 'actor', audit ->> 'action', audit ->> 'about', audit ->> 'reason',
                audit ->> 'before', audit ->> 'after');
    END IF;
END
$$;
