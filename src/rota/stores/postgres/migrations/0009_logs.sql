-- Logs of jobs: the newest lines of each attempt that logged any, one row an attempt.
--
-- Keyed by the job and its version at the claim, so that the lines of a stale
-- attempt can never show as those of the one that runs now.

CREATE TABLE rota.job_logs (
    job_id     uuid NOT NULL,
    version    integer NOT NULL,
    attempt    smallint NOT NULL,
    lines      jsonb NOT NULL,
    written    bigint NOT NULL,
    location   text,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (job_id, version)
);
CREATE INDEX job_logs_updated ON rota.job_logs (updated_at);
