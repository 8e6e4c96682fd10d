-- Jobs, their attempts and their events. Read by SQLite and PostgreSQL alike: times are Unix
-- milliseconds, booleans 0 and 1, JSON is text. A parameter that may be null is cast, since
-- PostgreSQL cannot guess the type of one it sees only in "is null".
--
-- The fence: every write of a worker says (job, epoch, processing). A claim raises the epoch and a
-- takeover leaves processing, so at most one ending per epoch can ever match.
--
-- Where one row is meant and its status has a partial index, the status is compared as an expression
-- (status || ''): else PostgreSQL, when it believes that index to be nearly empty, reads all of it in
-- place of the primary key, dead entries too: 391 pages instead of 42 behind an idle snapshot over 2,000
-- jobs (measured).

-- name: key_holder(account, route, derived, key)^
-- The job a key stands for, with all that decides whether the key still binds.
select idempotency.fingerprint, job.*
from idempotency
join job on job.id = idempotency.job_id
where idempotency.account = :account
    and idempotency.route = :route
    and idempotency.derived = :derived
    and idempotency.key = :key;

-- name: next_delayed(lanes, now)$
-- Only what is tried again waits for a time, so that the queue itself is not read.
select min((
    select delayed.run_at
    from job as delayed
    where delayed.status = 'queued'
        and delayed.lane = wanted.value
        and delayed.run_at > delayed.created_at
        and delayed.run_at > :now
    order by delayed.run_at
    limit 1
))
from json_each(cast(:lanes as text)) as wanted;

-- name: end_queued(job_id, status, completed_at, error, code)^
-- A job that ends without ever being taken: canceled, or past its deadline.
update job
set status = :status,
    completed_at = :completed_at,
    sequence = sequence + 1,
    error = :error,
    error_code = :code
where id = :job_id and status || '' = 'queued'
returning *;

-- name: request_cancel(job_id)!
-- The worker reads the wish with its next beat.
update job set cancel_requested = 1 where id = :job_id and status = 'processing';

-- name: void_leases()!
-- The holders died with the process before: whoever holds the directory now knows. Monotonic time
-- starts over with the machine, so an old lease_until says nothing; 0 is over on every clock.
update job set lease_until = 0 where lease_until is not null;

-- name: expired(now, limit)
-- From the lease index alone: only jobs that run are in it.
select * from job where lease_until <= :now order by lease_until, number limit :limit;

-- name: overdue(now, limit)
-- What the claim passes over: still queued, deadline gone.
select * from job where status = 'queued' and deadline_at <= :now order by deadline_at, number limit :limit;

-- name: next_tenant(gpu_instance_id, account)^
-- From account to account in the index, however many jobs each has there. In two steps: of a comparison of
-- pairs SQLite takes only the first half to the index.
select gpu_instance_id, account
from (
    select gpu_instance_id, account
    from (
        select beside.gpu_instance_id, beside.account
        from job as beside
        where beside.gpu_instance_id = :gpu_instance_id
            and beside.account > :account
            and beside.completed_at is null
        order by beside.account
        limit 1
    ) as same_instance
    union all
    select gpu_instance_id, account
    from (
        select further.gpu_instance_id, further.account
        from job as further
        where further.gpu_instance_id > :gpu_instance_id and further.completed_at is null
        order by further.gpu_instance_id, further.account
        limit 1
    ) as another_instance
) as tenant
order by gpu_instance_id, account
limit 1;

-- name: bound_jobs(gpu_instance_id, account, limit)
-- What waits or runs, the first to be admitted first.
select *
from job
where gpu_instance_id = :gpu_instance_id and account = :account and completed_at is null
order by number
limit :limit;

-- name: job_by_id(job_id)^
-- For the store itself, and for links and tokens, which carry their own right.
select * from job where id = :job_id;

-- name: job_of_account(account, job_id)^
-- Another account's job is not found: that it exists is nobody's business.
select * from job where id = :job_id and account = :account;

-- name: list_jobs(account, status, engine, tag, code, since, before, limit)
-- Newest first. The order is that of admission, not of ids: theirs starts with the kind of job.
-- A tag is asked for as "name:value" and compared as that: so every place where a colon may part it counts.
-- An id to go on from that is not this account's makes the comparison null: an empty page.
select *
from job
where account = :account
    and number < case
        when cast(:before as text) is null then 9223372036854775807
        else coalesce(
            (select last.number from job as last where last.id = :before and last.account = :account),
            (select gone.number from tombstone as gone where gone.id = :before and gone.account = :account)
        )
    end
    and (cast(:status as text) is null or status = :status)
    and (cast(:engine as text) is null or engine = :engine)
    and (cast(:code as text) is null or error_code = :code)
    and (cast(:since as bigint) is null or created_at >= :since)
    and (
        cast(:tag as text) is null
        or exists (select 1 from json_each(tags) as own where own.key || ':' || own.value = :tag)
    )
order by number desc
limit :limit;

-- name: queue_position(job_id)$
-- How many of its account's jobs in its lane would be claimed before it: between accounts it is turns that
-- decide, not places. 0 as well when it does not wait.
select count(*)
from job as mine
join job as ahead on ahead.lane = mine.lane and ahead.account = mine.account and ahead.status = 'queued'
where mine.id = :job_id
    and mine.status = 'queued'
    and (
        ahead.priority > mine.priority
        or (ahead.priority = mine.priority and ahead.run_at < mine.run_at)
        or (ahead.priority = mine.priority and ahead.run_at = mine.run_at and ahead.number < mine.number)
    );

-- name: finished_twin(account, work_key, now)^
-- Number stands for age: it comes with every index entry, and equal work ends in about the order of
-- its admission.
select *
from job
where account = :account
    and work_key = :work_key
    and status = 'completed'
    and removed = 0
    and retained_until > :now
order by number desc
limit 1;

-- name: job_events(job_id, after, limit)
-- By the index of unique (job_id, sequence), from where the reader left off.
select * from event where job_id = :job_id and sequence > :after order by sequence limit :limit;

-- name: feed(account, after, limit)
-- By position, which follows the order in which events became visible; event numbers do not have
-- to on a database with several writers.
select * from event where account = :account and position > :after order by position limit :limit;

-- name: mark_removed(account, job_id)!
-- Files of a job that is not terminal are still being made or read. Bytes first, then this mark, so
-- that none are left without a row that leads to them.
update job
set removed = 1
where id = :job_id and account = :account and status in ('completed', 'failed', 'canceled');

-- name: lapsed(now, limit)
-- A job that still waits or runs keeps its files, however old it is.
select *
from job
where removed = 0
    and retained_until <= :now
    and status in ('completed', 'failed', 'canceled')
order by retained_until, number
limit :limit;

-- name: count_jobs()
-- What waits and what runs, each from its partial index: finished jobs, however many, are not read.
select 'queued' as status, lane, count(*) as jobs from job where status = 'queued' group by lane
union all
select 'processing' as status, lane, count(*) as jobs from job where lease_until is not null group by lane;

-- name: oldest_queued(lane)$
-- Reads the lane's queue, for a scaler that asks every few seconds.
select min(created_at) from job where status = 'queued' and lane = :lane;

-- name: insert_file(id, account, key, sha256, size_bytes, created_at, expires_at)!
-- After the bytes are durable, never before.
insert into file (id, account, key, sha256, size_bytes, created_at, expires_at)
values (:id, :account, :key, :sha256, :size_bytes, :created_at, :expires_at);

-- name: file_of_account(account, file_id)^
-- As with jobs: another account's file is not found.
select * from file where id = :file_id and account = :account;

-- name: lapsed_files(now, limit)
-- For the janitor: bytes first, then forget_file, so that none are left without a record.
select * from file where expires_at <= :now order by expires_at, id limit :limit;

-- name: forget_file(file_id)!
-- Forgetting what is forgotten is fine.
delete from file where id = :file_id;

-- name: orphans(owners)
-- Of these ids, those whose bytes nobody can reach: of jobs that were removed, and of uploads that were
-- never recorded. A job has a row before it has bytes, and a tombstone after it: one that is unknown here is
-- not ours to judge. An expression, so that no index of removed jobs is read for it (as above).
select wanted.value as owner
from json_each(cast(:owners as text)) as wanted
where exists (select 1 from job where job.id = wanted.value and job.removed + 0 = 1)
    or exists (select 1 from tombstone where tombstone.id = wanted.value)
    or (
        wanted.value like 'file!_%' escape '!'
        and not exists (select 1 from file where file.id = wanted.value)
    );

-- name: unknown_jobs(ids)
-- Those of these ids that no job has. A job's inputs are stored before its row is.
select wanted.value as id
from json_each(cast(:ids as text)) as wanted
where not exists (select 1 from job where job.id = wanted.value);
