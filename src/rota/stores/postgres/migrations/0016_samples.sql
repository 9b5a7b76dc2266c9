-- What the dashboard draws of the database itself: is it suffering, and since when?

-- How it stood in each five minutes in which somebody worked. Kept for thirty days.
CREATE TABLE rota.room_samples (
    at                 timestamptz PRIMARY KEY, -- where the five minutes begin
    bytes              bigint NOT NULL, -- of all tables of this schema, with their indexes
    dead               bigint NOT NULL, -- rows that wait for vacuum, as the server reckons
    oldest_transaction float8 NOT NULL -- seconds; 0: nobody was in one
);

-- Who may keep samples of the queues may keep these too: until somebody calls rota.grant_to() again, the samplers and
-- janitors of such roles would trip over the new table.
DO $$
DECLARE
    app regrole;
BEGIN
    FOR app IN
        SELECT DISTINCT given.grantee::regrole FROM pg_class AS c, aclexplode(c.relacl) AS given
        WHERE c.oid = 'rota.depths'::regclass AND given.privilege_type = 'INSERT' AND given.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON rota.room_samples TO %s', app);
    END LOOP;
END
$$;

-- A constant default, so that nothing is written anew; workers of the code before go on and count none.
ALTER TABLE rota.depths ADD COLUMN retrying bigint NOT NULL DEFAULT 0;

-- Charts mark when new code came.
CREATE INDEX code_versions_seen ON rota.code_versions (first_seen);
