-- Make the database of the embedded server: once, after initdb and before its first start.
--
-- Runs in single-user mode on a directory that nobody else knows yet, so it can neither race nor be
-- half done: the directory gets its name only when this has succeeded. Reads no index.
CREATE DATABASE rota;
