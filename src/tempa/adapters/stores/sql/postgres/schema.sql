-- The schema's own number, as SQLite has one in the file's head. Its table is made by the first script.

-- name: lock_schema()$
-- One process at a time makes a database ready; the others find it made.
select pg_advisory_xact_lock(1952804976, 0);

-- name: is_new()$
-- Whether there is no number yet. By name on the search path: Tempa may live in a schema of its own.
select to_regclass('tempa_schema') is null;

-- name: schema_version()$
-- What the database holds.
select version from tempa_schema;

-- name: set_schema_version(version)!
-- In the transaction of the script that leads to it.
update tempa_schema set version = :version;

-- name: synchronous_commit()$
-- "off" means that a commit is told before it is on disk.
select current_setting('synchronous_commit');
