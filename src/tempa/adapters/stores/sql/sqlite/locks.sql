-- There is one writer: whoever writes holds every lock already. The queries of postgres/locks.sql.

-- name: lock_claims()$
-- One claim at a time.
select 1;

-- name: lock_feed()$
-- One sequencer at a time.
select 1;

-- name: lock_deliveries()$
-- One claim of deliveries at a time.
select 1;

-- name: lock_registrations()$
-- One endpoint is registered at a time.
select 1;

-- name: lock_ledger()$
-- One posting at a time.
select 1;

-- name: job_for_update(job_id)^
-- A job that nobody changes until this transaction ends.
select * from job where id = :job_id;

-- name: jobs_for_update(job_ids, unread)
-- Jobs that nobody changes until this transaction ends. A request never changes: only those that are not
-- known are read.
select
    id, cancel_requested, work_key,
    case when id in (select value from json_each(:unread)) then request end as request
from job
where id in (select value from json_each(:job_ids));

-- name: advance_feed(events)$
-- The last of :events new positions.
update feed set position = position + :events returning position;

-- name: lock_endpoints(numbers)$
-- Endpoints that nobody changes until this transaction ends.
select :numbers;

-- name: endpoints_for_update(numbers)
-- Endpoints that nobody changes until this transaction ends.
select * from endpoint where number in (select value from json_each(:numbers));
