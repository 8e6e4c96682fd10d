-- What is written row by row here, and set by set on PostgreSQL (postgres/sets.sql).

-- name: bind_key(account, route, derived, key, fingerprint, job_id, bound_at)!
-- A key whose job no longer holds it passes to the new job; there is one row a key for ever.
insert into idempotency (account, route, derived, key, fingerprint, job_id, bound_at)
values (:account, :route, :derived, :key, :fingerprint, :job_id, :bound_at)
on conflict (account, route, derived, key)
do update set fingerprint = excluded.fingerprint, job_id = excluded.job_id, bound_at = excluded.bound_at;

-- name: insert_job(id, account, engine, lane, priority, created_at, deadline_at, retained_until, work_key, tags, request, gpu_instance_id, run_at)!
-- A job is born queued, due at once, with one event.
insert into job (
    id, account, status, engine, lane, priority, created_at, run_at, deadline_at, retained_until,
    sequence, work_key, tags, request, gpu_instance_id
)
values (
    :id, :account, 'queued', :engine, :lane, :priority, :created_at, :run_at, :deadline_at,
    :retained_until, 1, :work_key, :tags, :request, :gpu_instance_id
);

-- name: insert_event*!
-- In the transaction it tells of. unique (job_id, sequence) and the one terminal event a job are
-- the second net below the fence.
insert into event (id, account, job_id, sequence, type, at, body, announce)
values (:id, :account, :job_id, :sequence, :type, :at, :body, :announce);

-- name: tell_stages(reached, account, job_id, first, ended_at)!
-- The stages that an attempt had reached when it ended, in their order: event numbers follow sequences.
insert into event (id, account, job_id, sequence, type, at, body, announce)
select
    told.value ->> 'id', :account, :job_id, :first + told.key, told.value ->> 'type', :ended_at,
    told.value ->> 'body', told.value ->> 'announce'
from json_each(cast(:reached as text)) as told
order by told.key;

-- name: take_job(job_id, epoch, sequence, worker, now, lease_until)^
-- Its epoch was read in this same transaction, with nobody else who writes.
update job
set status = 'processing',
    epoch = :epoch,
    sequence = :sequence,
    started_at = coalesce(started_at, :now),
    lease_until = :lease_until,
    worker = :worker
where id = :job_id and epoch = :epoch - 1 and status = 'queued'
returning id;

-- name: open_attempt*!
-- One row a claim; the primary key says that an epoch is given once.
insert into attempt (job_id, epoch, worker, started_at) values (:job_id, :epoch, :worker, :started_at);

-- name: close_attempt(job_id, epoch, ended_at, outcome, attempt_code, compute_time_ms, peak_rss_bytes)!
-- Only called behind the fence; a trigger refuses to close an attempt twice.
update attempt
set ended_at = :ended_at,
    outcome = :outcome,
    code = :attempt_code,
    compute_time_ms = :compute_time_ms,
    peak_rss_bytes = :peak_rss_bytes
where job_id = :job_id and epoch = :epoch;

-- name: beat_one(job_id, epoch, lease_until, stage, fraction, events)^
-- Heartbeat and progress are one write. No row back: the lease is lost. That it ran out does not
-- matter as long as nobody took over: the worker that comes back keeps minutes of work.
update job
set lease_until = :lease_until,
    stage = coalesce(:stage, stage),
    fraction = coalesce(:fraction, fraction),
    sequence = sequence + :events
where id = :job_id and epoch = :epoch and status = 'processing'
returning id as job_id, epoch, account, sequence, cancel_requested;

-- name: end_attempt(job_id, epoch, lapsed_by, status, completed_at, run_at, crashes, retries, events, stage, result, error, code, cached, compute_time_ms, peak_rss_bytes)^
-- Every ending of an attempt. No row back: fenced off, write nothing. :lapsed_by is given by a
-- takeover only, which must see in this very statement that the lease is still out: its snapshot
-- may be older than the worker's last beat (the fault of riverqueue/river#1302).
update job
set status = :status,
    completed_at = :completed_at,
    run_at = coalesce(:run_at, run_at),
    crash_count = crash_count + :crashes,
    retry_count = retry_count + :retries,
    sequence = sequence + :events,
    lease_until = null,
    worker = null,
    stage = case when :status = 'queued' then null else coalesce(:stage, stage) end,
    fraction = case when :status = 'queued' then null else fraction end,
    result = :result,
    error = :error,
    error_code = :code,
    cached = :cached,
    compute_time_ms = :compute_time_ms,
    peak_rss_bytes = :peak_rss_bytes
where id = :job_id and epoch = :epoch and status = 'processing'
    and (cast(:lapsed_by as bigint) is null or lease_until <= :lapsed_by)
returning id as job_id, epoch, sequence, account;

-- name: redrive*!
-- A new round: the retries are whole again, the attempts go on counting. Behind the lock of its endpoint, which
-- may have been removed since the letters were looked up: what began to wait there would wait for ever.
update delivery
set status = 'pending', retries_spent = 0, finished_at = null, reason = null, next_at = :next_at
where number = :number
    and status = 'dead'
    and message is not null
    and exists (
        select 1 from endpoint where endpoint.number = delivery.endpoint_number and endpoint.status <> 'removed'
    );

-- name: discard*!
-- reason keeps why the delivery died, discard_reason why a person let it go.
update delivery
set status = 'canceled', finished_at = :now, discard_reason = :reason
where number = :number and status = 'dead';

-- name: touch_key*!
-- Reports of several processes may come in any order: the time never goes back.
update api_key
set last_used_at = :used_at
where id = :key_id and (last_used_at is null or last_used_at < :used_at);
