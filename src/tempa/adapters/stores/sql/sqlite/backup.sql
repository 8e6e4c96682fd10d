-- What a copied database is about, for the backup that it is the heart of.

-- name: kept_results()
-- Results whose files should be there. Read from the copy, so that each of its rows gets its files.
select id, result from job where status = 'completed' and removed = 0 order by number;

-- name: kept_inputs()
-- What jobs work on, or may be asked to work on again. One that is fetched by URL has no file here.
select id, inputs
from (select id, number, json_extract(request, '$.inputs') as inputs from job where removed = 0)
where inputs <> '{}'
order by number;

-- name: kept_uploads()
-- Inputs that jobs in the copy may still need.
select id, key, sha256, size_bytes from file order by id;

-- name: backup_counts()^
-- For people, and to compare with after a restore.
select
    (select count(*) from job) as jobs,
    (select count(*) from job where status in ('queued', 'processing')) as unfinished_jobs,
    (select count(*) from event) as events,
    (select count(*) from delivery) as deliveries,
    (select count(*) from api_key) as keys;

-- name: skip_positions(by)!
-- Positions that were given after the backup are in readers' hands: they are never given again.
update feed set position = position + :by;
