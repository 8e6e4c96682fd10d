-- What SQLite writes row by row (sqlite/rows.sql), set by set: each parameter is an array, a column of
-- the rows. One statement, however many rows: what costs here is the way to the server and back.

-- name: insert_event(id, account, job_id, sequence, type, at, body, announce)!
-- In the transaction it tells of. unique (job_id, sequence) and the one terminal event a job are
-- the second net below the fence. Written in the order given: event numbers follow sequences.
insert into event (id, account, job_id, sequence, type, at, body, announce)
select id, account, job_id, sequence, type, at, body, announce
from unnest(
    cast(:id as text[]), cast(:account as text[]), cast(:job_id as text[]), cast(:sequence as integer[]),
    cast(:type as text[]), cast(:at as bigint[]), cast(:body as text[]), cast(:announce as text[])
) with ordinality as event (id, account, job_id, sequence, type, at, body, announce, place)
order by place;

-- name: start_jobs(job_id, account, epoch, sequence, worker, now, lease_until, event_id, body, announce)
-- Takes what was chosen, opens its attempt and says so, in one statement. A cancel or a deadline may hold
-- one of them: it is passed over, not waited for. The primary key of attempt says that an epoch is given
-- once.
with wanted as (
    select *
    from unnest(
        cast(:job_id as text[]), cast(:account as text[]), cast(:epoch as integer[]), cast(:sequence as integer[]),
        cast(:worker as text[]), cast(:now as bigint[]), cast(:lease_until as bigint[]),
        cast(:event_id as text[]), cast(:body as text[]), cast(:announce as text[])
    ) as wanted (job_id, account, epoch, sequence, worker, now, lease_until, event_id, body, announce)
),
chosen as (
    select job.number, wanted.*
    from wanted
    join job on job.id = wanted.job_id and job.epoch = wanted.epoch - 1 and job.status || '' = 'queued'
    for update of job skip locked
),
taken as (
    update job
    set status = 'processing',
        epoch = chosen.epoch,
        sequence = chosen.sequence,
        started_at = coalesce(job.started_at, chosen.now),
        lease_until = chosen.lease_until,
        worker = chosen.worker
    from chosen
    where job.number = chosen.number
    returning job.id
),
opened as (
    insert into attempt (job_id, epoch, worker, started_at)
    select job_id, epoch, worker, now from chosen
),
told as (
    insert into event (id, account, job_id, sequence, type, at, body, announce)
    select event_id, account, job_id, sequence, 'job.started', now, body, announce from chosen
)
select id from taken;

-- name: jobs_for_update(job_ids, unread)
-- In one order, so that two who want some of the same never wait for each other. The time is that of the
-- last of them, behind its lock. A request never changes: only those that are not known are read.
with held as materialized (
    select id, cancel_requested, work_key, request
    from job
    where id in (select value from json_each(cast(:job_ids as text)))
    order by id
    for update
)
select
    id, cancel_requested, work_key,
    case when id in (select value from json_each(cast(:unread as text))) then request end as request,
    now_ms() as now
from held;

-- name: beat(job_id, epoch, lease_until, stage, fraction, events)
-- Heartbeat and progress are one write. No row back: the lease is lost. That it ran out does not
-- matter as long as nobody took over: the worker that comes back keeps minutes of work.
with held as (
    select job.number, beat.lease_until, beat.stage, beat.fraction, beat.events
    from unnest(
        cast(:job_id as text[]), cast(:epoch as integer[]), cast(:lease_until as bigint[]),
        cast(:stage as text[]), cast(:fraction as double precision[]), cast(:events as integer[])
    ) as beat (job_id, epoch, lease_until, stage, fraction, events)
    join job on job.id = beat.job_id and job.epoch = beat.epoch and job.status = 'processing'
    order by job.id
    for update of job
)
update job
set lease_until = held.lease_until,
    stage = coalesce(held.stage, job.stage),
    fraction = coalesce(held.fraction, job.fraction),
    sequence = job.sequence + held.events
from held
where job.number = held.number
returning job.id as job_id, job.epoch, job.account, job.sequence, job.cancel_requested;

-- name: end_attempts(job_id, epoch, lapsed_by, status, completed_at, run_at, crashes, retries, events, reached, event_id, event_type, body, announce, stage, result, error, code, cached, compute_time_ms, peak_rss_bytes, ended_at, outcome, attempt_code)
-- Every ending of an attempt. No row back: fenced off, write nothing. lapsed_by is given by a takeover
-- only, which must see in this very statement that the lease is still out: what it read before may be
-- older than the worker's last beat (the fault of riverqueue/river#1302). What the attempts cost goes on
-- their accounts' day. What is told of each is numbered by its job's row, event numbers follow sequences.
-- `ended` hands on what the others need: joined to `ending` again they took half of the time (without hash
-- joins, see PLANNING, every row meets every other).
with ending as (
    select *
    from unnest(
        cast(:job_id as text[]), cast(:epoch as integer[]), cast(:lapsed_by as bigint[]), cast(:status as text[]),
        cast(:completed_at as bigint[]), cast(:run_at as bigint[]), cast(:crashes as integer[]),
        cast(:retries as integer[]), cast(:events as integer[]), cast(:reached as text[]), cast(:event_id as text[]),
        cast(:event_type as text[]), cast(:body as text[]), cast(:announce as text[]), cast(:stage as text[]), cast(:result as text[]),
        cast(:error as text[]), cast(:code as text[]), cast(:cached as integer[]),
        cast(:compute_time_ms as bigint[]), cast(:peak_rss_bytes as bigint[]), cast(:ended_at as bigint[]),
        cast(:outcome as text[]), cast(:attempt_code as text[])
    ) as ending (
        job_id, epoch, lapsed_by, status, completed_at, run_at, crashes, retries, events, reached, event_id, event_type,
        body, announce, stage, result, error, code, cached, compute_time_ms, peak_rss_bytes, ended_at, outcome, attempt_code
    )
),
ended as (
    update job
    set status = ending.status,
        completed_at = ending.completed_at,
        run_at = coalesce(ending.run_at, job.run_at),
        crash_count = job.crash_count + ending.crashes,
        retry_count = job.retry_count + ending.retries,
        sequence = job.sequence + ending.events,
        lease_until = null,
        worker = null,
        stage = case when ending.status = 'queued' then null else coalesce(ending.stage, job.stage) end,
        fraction = case when ending.status = 'queued' then null else job.fraction end,
        result = ending.result,
        error = ending.error,
        error_code = ending.code,
        cached = ending.cached,
        compute_time_ms = ending.compute_time_ms,
        peak_rss_bytes = ending.peak_rss_bytes
    from ending
    where job.id = ending.job_id
        and job.epoch = ending.epoch
        and job.status = 'processing'
        and (ending.lapsed_by is null or job.lease_until <= ending.lapsed_by)
    returning
        job.number, job.id as job_id, job.epoch, job.sequence, job.account, ending.events, ending.reached,
        ending.event_id, ending.event_type, ending.body, ending.announce, ending.ended_at,
        ending.outcome, ending.attempt_code, ending.compute_time_ms, ending.peak_rss_bytes
),
closed as (
    update attempt
    set ended_at = ended.ended_at,
        outcome = ended.outcome,
        code = ended.attempt_code,
        compute_time_ms = ended.compute_time_ms,
        peak_rss_bytes = ended.peak_rss_bytes
    from ended
    where attempt.job_id = ended.job_id and attempt.epoch = ended.epoch
),
spent as (
    insert into account_day (day, account, compute_ms)
    select ended_at / 86400000, account, sum(compute_time_ms)
    from ended
    where compute_time_ms > 0
    group by 1, 2
),
written as (
    insert into event (id, account, job_id, sequence, type, at, body, announce)
    select id, account, job_id, sequence, type, ended_at, body, announce
    from (
        select
            number, event_id as id, account, job_id, sequence, event_type as type, ended_at, body, announce
        from ended
        union all
        select
            ended.number, told.id, ended.account, ended.job_id, ended.sequence - ended.events + told.place, told.type,
            ended.ended_at, told.body, told.announce
        from ended
        cross join lateral rows from (
            json_to_recordset(cast(ended.reached as json)) as (id text, type text, body text, announce text)
        ) with ordinality as told (id, type, body, announce, place)
        where ended.reached is not null
    ) as event
    order by number, sequence
)
select job_id, epoch from ended;

-- name: redrive(number, next_at)!
-- A new round: the retries are whole again, the attempts go on counting. Behind the lock of its endpoint, which
-- may have been removed since the letters were looked up: what began to wait there would wait for ever.
update delivery
set status = 'pending', retries_spent = 0, finished_at = null, reason = null, next_at = letter.next_at
from unnest(cast(:number as bigint[]), cast(:next_at as bigint[])) as letter (number, next_at)
where delivery.number = letter.number
    and delivery.status = 'dead'
    and delivery.message is not null
    and exists (
        select 1 from endpoint where endpoint.number = delivery.endpoint_number and endpoint.status <> 'removed'
    );

-- name: discard(number, now, reason)!
-- reason keeps why the delivery died, discard_reason why a person let it go.
update delivery
set status = 'canceled', finished_at = letter.now, discard_reason = letter.reason
from unnest(cast(:number as bigint[]), cast(:now as bigint[]), cast(:reason as text[])) as letter (number, now, reason)
where delivery.number = letter.number and delivery.status = 'dead';

-- name: touch_key(key_id, used_at)!
-- Reports of several processes may come in any order: the time never goes back. Locked in one order, so that
-- two of them that tell of the same keys never wait for each other.
with used as (
    select api_key.id, used.used_at
    from unnest(cast(:key_id as text[]), cast(:used_at as bigint[])) as used (key_id, used_at)
    join api_key on api_key.id = used.key_id
    order by api_key.id
    for update of api_key
)
update api_key
set last_used_at = used.used_at
from used
where api_key.id = used.id and (api_key.last_used_at is null or api_key.last_used_at < used.used_at);

-- name: admit(ordinal, id, event_id, account, engine, lane, priority, created_at, deadline_at, retained_until, work_key, tags, request, gpu_instance_id, body, announce, route, derived, key, fingerprint, not_for, now)
-- Keys, jobs and first events of many requests in one statement: a row for each that was admitted. A key
-- is taken if it is free, or if the job that has it no longer holds it; that job must be seen here: one
-- that another process admits at this moment is not, and holds. In one order, so that two processes that
-- want some of the same keys never wait for each other.
with asked as (
    select asked.*, coalesce(asked.fixed_now, now_ms()) as now
    from unnest(
        cast(:ordinal as integer[]), cast(:id as text[]), cast(:event_id as text[]), cast(:account as text[]),
        cast(:engine as text[]), cast(:lane as text[]), cast(:priority as integer[]), cast(:created_at as bigint[]),
        cast(:deadline_at as bigint[]), cast(:retained_until as bigint[]), cast(:work_key as text[]),
        cast(:tags as text[]), cast(:request as text[]), cast(:gpu_instance_id as text[]), cast(:body as text[]),
        cast(:announce as text[]), cast(:route as text[]), cast(:derived as integer[]), cast(:key as text[]),
        cast(:fingerprint as text[]), cast(:not_for as text[]), cast(:now as bigint[])
    ) as asked (
        ordinal, id, event_id, account, engine, lane, priority, created_at, deadline_at, retained_until, work_key,
        tags, request, gpu_instance_id, body, announce, route, derived, key, fingerprint, not_for, fixed_now
    )
),
bound as (
    insert into idempotency (account, route, derived, key, fingerprint, job_id, bound_at)
    select account, route, derived, key, fingerprint, id, now
    from asked
    where key is not null
    order by account, route, derived, key
    on conflict (account, route, derived, key) do update
    set fingerprint = excluded.fingerprint, job_id = excluded.job_id, bound_at = excluded.bound_at
    where exists (
        select 1
        from job as holder
        where holder.id = idempotency.job_id
            and holder.completed_at is not null
            and (
                holder.retained_until <= excluded.bound_at
                or holder.id in (select not_for from asked where not_for is not null)
                or case
                    when excluded.derived = 1 then holder.removed = 1 or holder.status in ('failed', 'canceled')
                    else holder.completed_at + 86400000 <= excluded.bound_at
                end
            )
    )
    returning job_id
),
written as (
    insert into job (
        id, account, status, engine, lane, priority, created_at, run_at, deadline_at, retained_until,
        sequence, work_key, tags, request, gpu_instance_id
    )
    select
        id, account, 'queued', engine, lane, priority, created_at, now, deadline_at, retained_until,
        1, work_key, tags, request, gpu_instance_id
    from asked
    where key is null or id in (select job_id from bound)
    order by ordinal
    returning id, run_at
),
told as (
    insert into event (id, account, job_id, sequence, type, at, body, announce)
    select asked.event_id, asked.account, asked.id, 1, 'job.queued', asked.created_at, asked.body, asked.announce
    from asked
    join written on written.id = asked.id
    order by asked.ordinal
)
select id, run_at from written;
