-- Whether the server is a replica, and whether transactions of new connections only read.
--
-- What a database or a role is set to holds for connections made since, so this one may know an older word: the
-- catalog decides, unless the address itself says it. Asked every few seconds by each server of pages.
-- Reads no table of ours: the keys of pg_db_role_setting and of databases and roles, and this connection's settings.
SELECT pg_is_in_recovery(),
       CASE WHEN own.source = 'client' THEN own.setting::boolean
            ELSE coalesce(told.setting::boolean,
                          own.source NOT IN ('database', 'user', 'database user') AND own.setting::boolean) END
FROM (SELECT setting, source FROM pg_settings WHERE name = 'default_transaction_read_only') AS own
LEFT JOIN LATERAL (
    SELECT split_part(word, '=', 2) AS setting
    FROM pg_db_role_setting, unnest(setconfig) AS word
    WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
      AND setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user))
      AND word LIKE 'default\_transaction\_read\_only=_%%'
    ORDER BY setrole <> 0 DESC, setdatabase <> 0 DESC
    LIMIT 1) AS told ON true
