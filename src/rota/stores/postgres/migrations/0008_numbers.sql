-- What operators ask at night: which queues and which tenant a worker serves.

-- Nullable, so that nothing is rewritten and workers of the code before go on:
-- a session that does not say is taken to serve every queue.
ALTER TABLE rota.sessions ADD COLUMN queues jsonb, ADD COLUMN tenant text;

-- What sessions did, minute by minute, by queue, task and how attempts ended. A
-- session's rows hold absolute totals and are written outside of every settle.
-- The session that is all zeros stands for all of them, merged by a roller.
-- Histograms are log-scale: the buckets that are not empty, and their counts.
CREATE TABLE rota.minutes (
    minute      timestamptz NOT NULL,
    session_id  uuid NOT NULL,
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
    PRIMARY KEY (minute, session_id, queue, task, ending)
);
CREATE INDEX minutes_unmerged ON rota.minutes (minute) WHERE session_id <> '00000000-0000-0000-0000-000000000000';

-- The same by tenant; an empty name stands for jobs of none.
CREATE TABLE rota.tenant_minutes (
    minute     timestamptz NOT NULL,
    session_id uuid NOT NULL,
    tenant     text NOT NULL,
    jobs       bigint NOT NULL,
    faults     bigint NOT NULL,
    run_sum    float8 NOT NULL,
    PRIMARY KEY (minute, session_id, tenant)
);
CREATE INDEX tenant_minutes_unmerged ON rota.tenant_minutes (minute)
    WHERE session_id <> '00000000-0000-0000-0000-000000000000';

-- How full the lanes were: slots and busy slots, added up over many looks.
CREATE TABLE rota.lane_minutes (
    minute     timestamptz NOT NULL,
    session_id uuid NOT NULL,
    lane       text NOT NULL,
    slots      bigint NOT NULL,
    busy       bigint NOT NULL,
    PRIMARY KEY (minute, session_id, lane)
);
CREATE INDEX lane_minutes_unmerged ON rota.lane_minutes (minute)
    WHERE session_id <> '00000000-0000-0000-0000-000000000000';

-- What apps expect of their queues: how long a due job should wait at most, in seconds.
CREATE TABLE rota.queues (
    name   text PRIMARY KEY,
    target float8 CHECK (target > 0)
);

-- The words of two systems that Rota takes over from, for their operators' queries. Views only: whoever may read the
-- schema rota may be given these as well.
CREATE SCHEMA IF NOT EXISTS rota_lipas;
CREATE SCHEMA IF NOT EXISTS rota_docverse;

-- LIPAS. Cancelled jobs have no word there and are left out.
CREATE OR REPLACE VIEW rota_lipas.jobs AS
SELECT j.id, j.task AS type, j.payload,
       CASE WHEN j.state = 'pending' AND j.error_message IS NOT NULL AND j.attempt > 0 THEN 'failed'
            WHEN j.state IN ('pending', 'blocked') THEN 'pending'
            WHEN j.state = 'held' THEN 'paused'
            WHEN j.state = 'running' THEN 'processing'
            WHEN j.state = 'dead' THEN 'dead'
            ELSE 'completed' END AS status,
       j.priority, j.attempt AS attempts, j.max_attempts, j.run_at AS scheduled_at, j.run_at, j.claimed_at AS started_at,
       CASE WHEN j.state IN ('completed', 'partial') THEN j.finished_at END AS completed_at,
       j.error_message, j.error_message AS last_error,
       CASE WHEN j.error_message IS NOT NULL THEN coalesce(j.finished_at, j.updated_at) END AS last_error_at,
       coalesce(j.correlation_id, j.id::text) AS correlation_id, j.parent_id AS parent_job_id, j.created_by,
       j.unique_key AS dedup_key, j.created_at, j.updated_at
FROM rota.all_jobs AS j
WHERE j.state <> 'cancelled';

CREATE OR REPLACE VIEW rota_lipas.stuck_jobs AS
SELECT j.id, j.task AS type, 'processing' AS status, j.attempt AS attempts, j.created_at, j.claimed_at AS started_at,
       s.host, s.pid, s.lease_until
FROM rota.jobs AS j LEFT JOIN rota.sessions AS s ON s.id = j.session_id
WHERE j.state = 'running' AND j.claimed_at < now() - interval '1 hour';

CREATE OR REPLACE VIEW rota_lipas.dead_letter_jobs AS
SELECT d.id,
       jsonb_build_object('id', d.id, 'type', d.task, 'payload', d.payload, 'priority', d.priority, 'attempts', d.attempt,
           'max_attempts', d.max_attempts, 'correlation_id', coalesce(d.correlation_id, d.id::text),
           'parent_job_id', d.parent_id, 'created_by', d.created_by, 'dedup_key', d.unique_key,
           'created_at', d.created_at) AS original_job,
       coalesce(d.error_message, d.reason, '') AS error_message,
       (SELECT jsonb_agg(jsonb_build_object('attempt', a.attempt, 'class', a.error_class, 'type', a.error_type,
                   'message', a.message, 'stack', a.stack, 'at', a.ended_at) ORDER BY a.ended_at)
        FROM rota.failed_attempts AS a WHERE a.job_id = d.id) AS error_details,
       d.finished_at AS died_at, d.review <> 'pending_review' AS acknowledged, d.reviewed_by AS acknowledged_by,
       d.reviewed_at AS acknowledged_at
FROM rota.dead_jobs AS d;

-- Docverse. A tenant is an organisation; project and build are arguments of the job.
CREATE OR REPLACE VIEW rota_docverse.queue_job AS
SELECT j.id, j.external_id AS backend_job_id, j.task AS kind,
       CASE j.state WHEN 'pending' THEN 'queued' WHEN 'blocked' THEN 'queued' WHEN 'running' THEN 'in_progress'
            WHEN 'partial' THEN 'completed_with_errors' WHEN 'dead' THEN 'failed' ELSE j.state END AS status,
       j.tenant AS org_id, j.payload -> 'project_id' AS project_id, j.payload -> 'build_id' AS build_id,
       CASE WHEN j.error_message IS NOT NULL
            THEN jsonb_build_array(jsonb_build_object('class', j.error_class, 'message', j.error_message)) END AS errors,
       j.created_at AS date_created, j.claimed_at AS date_started, j.finished_at AS date_completed
FROM rota.all_jobs AS j
WHERE j.state <> 'held';

CREATE OR REPLACE VIEW rota_docverse.active_work AS
SELECT j.id, j.task AS kind, j.tenant AS org_id, j.payload -> 'project_id' AS project_id,
       j.payload -> 'build_id' AS build_id, j.attempt, j.claimed_at AS date_started, now() - j.claimed_at AS running_for,
       s.host, s.pid
FROM rota.jobs AS j LEFT JOIN rota.sessions AS s ON s.id = j.session_id
WHERE j.state = 'running';

CREATE OR REPLACE VIEW rota_docverse.slow_jobs AS
SELECT * FROM rota_docverse.active_work WHERE date_started < now() - interval '10 minutes';

-- Jobs that failed or completed with errors in the last hour, by kind, from the minutes.
CREATE OR REPLACE VIEW rota_docverse.recent_errors AS
SELECT m.task AS kind, sum(m.jobs)::bigint AS errors, max(m.minute) AS latest
FROM rota.minutes AS m
WHERE m.minute > now() - interval '1 hour' AND m.ending IN ('dead', 'partial')
GROUP BY 1;

CREATE OR REPLACE VIEW rota_docverse.org_throughput AS
SELECT t.tenant AS org_id, sum(t.jobs - t.faults)::bigint AS completed, sum(t.faults)::bigint AS failed
FROM rota.tenant_minutes AS t
WHERE t.minute > now() - interval '1 hour'
GROUP BY 1;
