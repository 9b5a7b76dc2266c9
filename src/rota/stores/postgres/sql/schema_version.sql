-- Which schema the database has, and how we are connected: a pooler shows
-- another backend than the one that greeted us. Reads migrations, a tiny table.
SELECT (SELECT max(version) FROM rota.migrations), pg_backend_pid(), current_setting('server_version_num')::integer
