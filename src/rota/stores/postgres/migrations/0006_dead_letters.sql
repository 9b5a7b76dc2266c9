-- Dead letters: which failures are alike, the job that does the work again, bulk
-- operations as rows; and an audit that nobody can change.

ALTER TABLE rota.dead_jobs
    ADD COLUMN fingerprint    text,
    ADD COLUMN error_type     text,
    ADD COLUMN frame          text,
    ADD COLUMN reprocessed_as uuid;

-- Groups of like failures: one probe a group, and counts without the rows themselves.
CREATE INDEX dead_jobs_group ON rota.dead_jobs (fingerprint, review, finished_at);
-- What died before there were fingerprints, or under code that knows none: a chore names it.
CREATE INDEX dead_jobs_unnamed ON rota.dead_jobs (id) WHERE fingerprint IS NULL;
-- Whose new job is still to be waited for.
CREATE INDEX dead_jobs_reprocessing ON rota.dead_jobs (id) WHERE review = 'reprocessing';

-- One verb on every dead letter that matches: who wants it, and how far it is.
CREATE TABLE rota.operations (
    id         uuid PRIMARY KEY,
    verb       text NOT NULL CHECK (verb IN ('acknowledge', 'discard', 'reprocess')),
    wanted     jsonb NOT NULL,
    actor      text NOT NULL,
    reason     text,
    rate       float8 CHECK (rate > 0),
    total      integer NOT NULL,
    done       integer NOT NULL DEFAULT 0,
    refused    integer NOT NULL DEFAULT 0,
    changed    integer NOT NULL DEFAULT 0,
    cursor_id  uuid,
    state      text NOT NULL CHECK (state IN ('running', 'stopped', 'finished')),
    driver     uuid NOT NULL,
    began_at   timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- The audit: what happened to one piece of work is found by its correlation; what one person did, and when.
ALTER TABLE rota.audit ADD COLUMN correlation_id text;
CREATE INDEX audit_correlation ON rota.audit (correlation_id, id) WHERE correlation_id IS NOT NULL;
CREATE INDEX audit_actor ON rota.audit (actor, id);
CREATE INDEX audit_action ON rota.audit (action, id);
CREATE INDEX audit_at ON rota.audit (at);

-- Rows are added, and never changed or removed: not even by the owner's slip. The one way to remove old ones is
-- rota.remove_audit(), which leaves a row about it.
CREATE FUNCTION rota.keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' AND current_setting('rota.removing_audit', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'rota: the audit is append-only; % is refused', lower(TG_OP)
        USING ERRCODE = 'insufficient_privilege',
              HINT = 'Old rows are removed on purpose with SELECT rota.remove_audit(before, actor, reason).';
END
$$;
CREATE TRIGGER audit_is_kept BEFORE UPDATE OR DELETE ON rota.audit FOR EACH ROW EXECUTE FUNCTION rota.keep_audit();
CREATE TRIGGER audit_is_kept_whole BEFORE TRUNCATE ON rota.audit
    FOR EACH STATEMENT EXECUTE FUNCTION rota.keep_audit();

-- Remove what is older than a moment, on purpose; how many rows. What says that a job was deleted stays: it keeps a
-- repeated enqueue from bringing the job back.
CREATE FUNCTION rota.remove_audit(before timestamptz, actor text, reason text) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    removed bigint;
BEGIN
    IF coalesce(remove_audit.actor, '') = '' OR coalesce(remove_audit.reason, '') = '' THEN
        RAISE EXCEPTION 'rota: removing audit rows needs who and why'
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'SELECT rota.remove_audit(now() - interval ''10 years'', ''ann'', ''policy 12'');';
    END IF;
    PERFORM set_config('rota.removing_audit', 'on', true);
    DELETE FROM rota.audit AS old WHERE old.at < remove_audit.before AND old.action <> 'delete';
    GET DIAGNOSTICS removed = ROW_COUNT;
    PERFORM set_config('rota.removing_audit', 'off', true);
    INSERT INTO rota.audit (at, actor, action, about, reason, before, after)
    VALUES (now(), remove_audit.actor, 'audit_removed', 'audit', remove_audit.reason,
            removed || ' rows', 'none before ' || remove_audit.before);
    RETURN removed;
END
$$;

-- Give a role of an app what it needs, and no more: everything but changing the audit.
CREATE FUNCTION rota.grant_to(role_name name) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA rota TO %I', role_name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rota TO %I', role_name);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rota TO %I', role_name);
    EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE ON rota.audit FROM %I', role_name);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON rota.migrations FROM %I', role_name);
END
$$;
REVOKE UPDATE, DELETE, TRUNCATE ON rota.audit FROM PUBLIC;
