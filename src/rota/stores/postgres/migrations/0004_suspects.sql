-- Suspects: jobs that killed the process in which they were alone, tasks that
-- are parked because too many of their jobs did, and which code is the newest.

-- One row a crash; the same crash noted twice is one.
CREATE TABLE rota.crashes (
    job_id       uuid NOT NULL,
    version      integer NOT NULL,
    task         text NOT NULL,
    code_version text NOT NULL,
    what         text NOT NULL,
    at           timestamptz NOT NULL,
    PRIMARY KEY (job_id, version)
);
CREATE INDEX crashes_task ON rota.crashes (task, code_version, at);

-- A parked task's jobs are not begun by workers of that code version until somebody releases it.
CREATE TABLE rota.parked_tasks (
    task         text NOT NULL,
    code_version text NOT NULL,
    crashes      integer NOT NULL,
    what         text NOT NULL,
    parked_at    timestamptz NOT NULL,
    released_at  timestamptz,
    released_by  text,
    PRIMARY KEY (task, code_version)
);

-- When a code version was seen first. A version has no order of its own (a commit, a hash); this gives it one.
CREATE TABLE rota.code_versions (
    version    text PRIMARY KEY,
    first_seen timestamptz NOT NULL
);
