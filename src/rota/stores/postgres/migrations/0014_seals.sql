-- The audit as a chain that shows whether it was tampered with, and where each action came from.

-- In two steps, because a default that is computed would be written into every old row.
ALTER TABLE rota.audit ADD COLUMN origin text;
ALTER TABLE rota.audit ALTER COLUMN origin SET DEFAULT nullif(current_setting('rota.origin', true), '');

-- A seal for each row from now on, in the order of their commits; rows of before have none. A seal stays when its row
-- is removed on purpose.
CREATE TABLE rota.audit_seals (
    place    bigint PRIMARY KEY,
    audit_id bigint NOT NULL UNIQUE,
    at       timestamptz NOT NULL,
    digest   bytea NOT NULL,
    hash     bytea NOT NULL
);

-- One field of a row, with its length in bytes, so that no two rows look alike. As _part() in rota._core.seal.
CREATE FUNCTION rota.sealed_part(field text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN field IS NULL THEN '-'::bytea
                ELSE convert_to(octet_length(convert_to(field, 'UTF8')) || ':' || field, 'UTF8') END
$$;

CREATE FUNCTION rota.sealed_moment(at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT (extract(epoch FROM at) * 1000000)::bigint::text
$$;

-- Seal a row when its transaction commits: so the chain is locked for no longer than a commit takes, nobody holds it
-- while he waits for a job, and its order is that of the commits. As the owner, because an app may add to the audit
-- but not to the seals. As sealed() in rota._core.seal.
--
-- Who sees the audit as it was when he began (repeatable read) may find the next place taken: that is a race that he
-- lost, told as such, and not a row that nobody can store.
CREATE FUNCTION rota.seal_audit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last rota.audit_seals;
    digest bytea;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('rota.audit_seals'), 0);
    SELECT * INTO last FROM rota.audit_seals ORDER BY place DESC LIMIT 1;
    SELECT sha256(string_agg(rota.sealed_part(field), ','::bytea ORDER BY nr)) INTO digest
    FROM unnest(ARRAY[NEW.id::text, rota.sealed_moment(NEW.at), NEW.actor, NEW.action, NEW.job_id::text, NEW.reason,
                      NEW.before, NEW.after, NEW.about, NEW.correlation_id, NEW.origin])
         WITH ORDINALITY AS f(field, nr);
    INSERT INTO rota.audit_seals (place, audit_id, at, digest, hash)
    VALUES (coalesce(last.place, 0) + 1, NEW.id, NEW.at, digest,
            sha256(coalesce(last.hash, ''::bytea) || digest || convert_to(rota.sealed_moment(NEW.at), 'UTF8')))
    ON CONFLICT (place) DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'rota: the audit has grown since this transaction looked' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER audit_is_sealed AFTER INSERT ON rota.audit DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION rota.seal_audit();

CREATE TRIGGER seals_are_kept BEFORE UPDATE OR DELETE ON rota.audit_seals
    FOR EACH ROW EXECUTE FUNCTION rota.keep_audit();
CREATE TRIGGER seals_are_kept_whole BEFORE TRUNCATE ON rota.audit_seals
    FOR EACH STATEMENT EXECUTE FUNCTION rota.keep_audit();
REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON rota.audit_seals FROM PUBLIC;

-- As in 0006, but the moment is written so that a program reads it, wherever the session's clock stands: whoever looks
-- at the chain must know which rows may be gone.
CREATE OR REPLACE FUNCTION rota.remove_audit(before timestamptz, actor text, reason text) RETURNS bigint
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
    VALUES (now(), remove_audit.actor, 'audit_removed', 'audit', remove_audit.reason, removed || ' rows',
            'none before ' || to_char(remove_audit.before AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'));
    RETURN removed;
END
$$;

-- As in 0012; and seals are made by the trigger alone.
CREATE OR REPLACE FUNCTION rota.grant_to(role_name name) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA rota TO %I', role_name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rota TO %I', role_name);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rota TO %I', role_name);
    EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE ON rota.audit FROM %I', role_name);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON rota.audit_seals FROM %I', role_name);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON rota.migrations FROM %I', role_name);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON rota.tokens, rota.retention FROM %I', role_name);
    EXECUTE format('GRANT UPDATE (last_used_at) ON rota.tokens TO %I', role_name);
END
$$;
