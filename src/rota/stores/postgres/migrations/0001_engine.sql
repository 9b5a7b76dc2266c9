-- The engine: hot and cold jobs apart, keys, tasks, sessions, attempts, audit.
--
-- `jobs` holds unfinished work only. What has ended lives in `finished_jobs`
-- (by day, dropped by retention) or `dead_jobs` (until reviewed). There are no
-- foreign keys between jobs: they would lock rows across the hot path.

CREATE TABLE rota.jobs (
    id                  uuid PRIMARY KEY,
    run_at              timestamptz NOT NULL,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    claimed_at          timestamptz,
    deadline            timestamptz,
    cancel_requested_at timestamptz,
    version             integer NOT NULL DEFAULT 1,
    claim_no            integer,
    snoozes             integer NOT NULL DEFAULT 0,
    priority            smallint NOT NULL DEFAULT 100 CHECK (priority >= 0),
    attempt             smallint NOT NULL DEFAULT 0,
    max_attempts        smallint NOT NULL DEFAULT 5,
    losses              smallint NOT NULL DEFAULT 0,
    timeout             real,
    session_id          uuid,
    parent_id           uuid,
    state               text NOT NULL DEFAULT 'pending'
                        CHECK (state IN ('pending', 'blocked', 'held', 'running')),
    task                text NOT NULL,
    queue               text NOT NULL DEFAULT 'default',
    payload             jsonb NOT NULL DEFAULT '{}',
    tenant              text,
    subject             text,
    external_id         text,
    key                 text,
    unique_key          text,
    unique_scope        text,
    gate                text,
    parked              text,
    correlation_id      text,
    tags                text[],
    created_by          text,
    category            text,
    payload_version     text,
    headers             jsonb,
    error_class         text,
    error_message       text,
    reason              text
) WITH (
    -- A queue table dies and is reborn all day: clean it early and without pauses.
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_analyze_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0
);

-- Claims by (queue, priority): equality on both, then oldest first.
CREATE INDEX jobs_due ON rota.jobs (queue, priority, run_at, id)
    WHERE state = 'pending' AND gate IS NULL AND parked IS NULL;
-- Claims of gated jobs, and the next in line behind a gate.
CREATE INDEX jobs_gated ON rota.jobs (queue, priority, run_at, id)
    WHERE state = 'pending' AND gate IS NOT NULL AND parked IS NULL;
CREATE INDEX jobs_at_gate ON rota.jobs (gate, priority, run_at, id)
    WHERE state = 'pending' AND parked = 'gate';
CREATE INDEX jobs_in_gate ON rota.jobs (gate) WHERE state = 'running' AND gate IS NOT NULL;
-- Whose jobs are these: beats, rescue, strays.
CREATE INDEX jobs_running ON rota.jobs (session_id) WHERE state = 'running';
-- No index for questions (by correlation, parent, subject, …) here: even empty, five of them cost every claim a tenth
-- of the server's time. This table holds only what is unfinished; the history below has them.

CREATE TABLE rota.finished_jobs (
    id              uuid NOT NULL,
    run_at          timestamptz NOT NULL,
    created_at      timestamptz NOT NULL,
    claimed_at      timestamptz,
    finished_at     timestamptz NOT NULL,
    deadline        timestamptz,
    version         integer NOT NULL,
    snoozes         integer NOT NULL,
    priority        smallint NOT NULL,
    attempt         smallint NOT NULL,
    max_attempts    smallint NOT NULL,
    losses          smallint NOT NULL,
    timeout         real,
    session_id      uuid,
    parent_id       uuid,
    superseded_by   uuid,
    state           text NOT NULL CHECK (state IN ('completed', 'partial', 'cancelled')),
    task            text NOT NULL,
    queue           text NOT NULL,
    payload         jsonb NOT NULL,
    tenant          text,
    subject         text,
    external_id     text,
    key             text,
    unique_key      text,
    unique_scope    text,
    gate            text,
    correlation_id  text,
    tags            text[],
    created_by      text,
    category        text,
    payload_version text,
    headers         jsonb,
    error_class     text,
    error_message   text,
    reason          text,
    result          jsonb
) PARTITION BY RANGE (finished_at);

CREATE INDEX finished_jobs_id ON rota.finished_jobs (id);
-- Questions people ask; each costs nothing for jobs that lack the value.
CREATE INDEX finished_jobs_correlation ON rota.finished_jobs (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX finished_jobs_parent ON rota.finished_jobs (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX finished_jobs_subject ON rota.finished_jobs (subject) WHERE subject IS NOT NULL;
CREATE INDEX finished_jobs_external ON rota.finished_jobs (external_id) WHERE external_id IS NOT NULL;
CREATE INDEX finished_jobs_key ON rota.finished_jobs (key) WHERE key IS NOT NULL;

CREATE TABLE rota.dead_jobs (
    id              uuid PRIMARY KEY,
    run_at          timestamptz NOT NULL,
    created_at      timestamptz NOT NULL,
    claimed_at      timestamptz,
    finished_at     timestamptz NOT NULL,
    deadline        timestamptz,
    version         integer NOT NULL,
    snoozes         integer NOT NULL,
    priority        smallint NOT NULL,
    attempt         smallint NOT NULL,
    max_attempts    smallint NOT NULL,
    losses          smallint NOT NULL,
    timeout         real,
    session_id      uuid,
    parent_id       uuid,
    task            text NOT NULL,
    queue           text NOT NULL,
    payload         jsonb NOT NULL,
    tenant          text,
    subject         text,
    external_id     text,
    key             text,
    unique_key      text,
    unique_scope    text,
    gate            text,
    correlation_id  text,
    tags            text[],
    created_by      text,
    category        text,
    payload_version text,
    headers         jsonb,
    error_class     text,
    error_message   text,
    reason          text,
    review          text NOT NULL DEFAULT 'pending_review'
                    CHECK (review IN ('pending_review', 'reprocessing', 'acknowledged', 'resolved', 'discarded')),
    reviewed_by     text,
    reviewed_at     timestamptz,
    review_notes    text
);

CREATE INDEX dead_jobs_review ON rota.dead_jobs (review, finished_at);
CREATE INDEX dead_jobs_correlation ON rota.dead_jobs (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX dead_jobs_parent ON rota.dead_jobs (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX dead_jobs_subject ON rota.dead_jobs (subject) WHERE subject IS NOT NULL;
CREATE INDEX dead_jobs_external ON rota.dead_jobs (external_id) WHERE external_id IS NOT NULL;
CREATE INDEX dead_jobs_key ON rota.dead_jobs (key) WHERE key IS NOT NULL;

-- Attempts that did not succeed; the last, successful one is in the job's own row.
CREATE TABLE rota.failed_attempts (
    job_id      uuid NOT NULL,
    version     integer NOT NULL,
    attempt     smallint NOT NULL,
    outcome     text NOT NULL,
    error_class text NOT NULL,
    error_type  text NOT NULL,
    message     text NOT NULL,
    stack       text,
    session_id  uuid,
    started_at  timestamptz,
    ended_at    timestamptz NOT NULL,
    PRIMARY KEY (job_id, version)
);
CREATE INDEX failed_attempts_ended ON rota.failed_attempts (ended_at);

-- Who holds a key. A key is never released by a write of its job: whether it
-- still holds is read from the job when somebody else wants it.
CREATE TABLE rota.keys (
    kind         text NOT NULL CHECK (kind IN ('idempotency', 'unique')),
    tenant       text NOT NULL,
    key          text NOT NULL,
    job_id       uuid,
    payload_hash text,
    scope        text,
    until        timestamptz,
    PRIMARY KEY (kind, tenant, key)
);
CREATE INDEX keys_until ON rota.keys (until);

-- The registry as data, so that SQL, CLI and rescuer need no user code.
CREATE TABLE rota.tasks (
    name            text PRIMARY KEY,
    queue           text NOT NULL,
    priority        smallint NOT NULL,
    retry           jsonb NOT NULL,
    timeout         real,
    payload_version text NOT NULL,
    schema          jsonb NOT NULL,
    gate_path       text,
    category        text,
    code_version    text,
    published_at    timestamptz NOT NULL
);

CREATE TABLE rota.sessions (
    id           uuid PRIMARY KEY,
    host         text NOT NULL,
    pid          integer NOT NULL,
    os_user      text,
    lanes        jsonb NOT NULL,
    tasks        text[] NOT NULL,
    code_version text,
    started_at   timestamptz NOT NULL,
    lease_until  timestamptz NOT NULL,
    ended_at     timestamptz
) WITH (fillfactor = 50);
-- Only the living are looked for; beats stay heap-only because no index has the lease.
CREATE INDEX sessions_living ON rota.sessions (id) WHERE ended_at IS NULL;

CREATE TABLE rota.audit (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL,
    actor     text NOT NULL,
    action    text NOT NULL,
    job_id    uuid NOT NULL,
    reason    text,
    before    text,
    after     text
);
CREATE INDEX audit_job ON rota.audit (job_id);

-- All jobs as one, whatever table they are in.
CREATE VIEW rota.all_jobs AS
SELECT id, version, state, task, queue, priority, payload, attempt, max_attempts, snoozes, losses, run_at, created_at,
       updated_at, claimed_at, NULL::timestamptz AS finished_at, deadline, timeout, cancel_requested_at, session_id,
       tenant, subject, external_id, key, unique_key, unique_scope, gate, parked, correlation_id, parent_id, tags,
       created_by, category, payload_version, headers, error_class, error_message, reason, NULL::uuid AS superseded_by,
       NULL::jsonb AS result, NULL::text AS review
FROM rota.jobs
UNION ALL
SELECT id, version, state, task, queue, priority, payload, attempt, max_attempts, snoozes, losses, run_at, created_at,
       finished_at, claimed_at, finished_at, deadline, timeout, NULL, session_id,
       tenant, subject, external_id, key, unique_key, unique_scope, gate, NULL, correlation_id, parent_id, tags,
       created_by, category, payload_version, headers, error_class, error_message, reason, superseded_by,
       result, NULL
FROM rota.finished_jobs
UNION ALL
SELECT id, version, 'dead', task, queue, priority, payload, attempt, max_attempts, snoozes, losses, run_at, created_at,
       finished_at, claimed_at, finished_at, deadline, timeout, NULL, session_id,
       tenant, subject, external_id, key, unique_key, unique_scope, gate, NULL, correlation_id, parent_id, tags,
       created_by, category, payload_version, headers, error_class, error_message, reason, NULL,
       NULL, review
FROM rota.dead_jobs;

-- Every attempt: those that failed, and the last one of each finished job.
CREATE VIEW rota.attempts AS
SELECT job_id, version, attempt, outcome, error_class, error_type, message, stack, session_id, started_at, ended_at
FROM rota.failed_attempts
UNION ALL
SELECT id, version - 1, attempt, state, NULL, NULL, NULL, NULL, session_id, claimed_at, finished_at
FROM rota.finished_jobs
WHERE state IN ('completed', 'partial');
