-- Rows past their time: jobs with all that is theirs, and the tombstones they leave. What is deleted
-- row by row on SQLite, and by sets on PostgreSQL, is in sqlite/retention.sql and postgres/retention.sql.

-- name: gone_at(account, job_id)$
-- As with jobs: of another account's job not even the tombstone is seen.
select gone_at from tombstone where id = :job_id and account = :account;

-- name: forget_tombstones(before, limit)!
-- From here on nobody can tell that there ever was such a job.
delete from tombstone
where id in (select old.id from tombstone as old where old.gone_at <= :before order by old.gone_at limit :limit);
