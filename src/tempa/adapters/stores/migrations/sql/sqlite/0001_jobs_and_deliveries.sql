-- The first schema: jobs, the event log, deliveries, keys.
-- Times are Unix milliseconds, but for lease_until: monotonic milliseconds of this boot. Booleans
-- are 0 and 1, JSON is text. `number` is the order in which rows were written; `id` is public.

-- weight: its share of the workers beside others. running_max: how many of its jobs may run at once;
-- null: any number. queued_max: how many may wait or run. In these and the two below null is the default of
-- the settings (limits.account_*).
create table account (
    id           text    primary key,
    created_at   integer not null,
    weight       real    not null default 1.0 check (weight > 0),
    running_max  integer check (running_max >= 0),
    queued_max   integer check (queued_max >= 0),
    requests_per_second      real check (requests_per_second > 0),
    compute_seconds_per_day  real check (compute_seconds_per_day >= 0)
) strict, without rowid;

-- Kernel milliseconds of an account's attempts, by the day (since 1970, UTC) on which they ended. Rows are
-- only added, and their sum is what counts: on PostgreSQL a row for each day, which every settlement of the
-- account would update, is waited for and grows a chain of dead versions behind an idle snapshot.
create table account_day (
    number      integer primary key,
    day         integer not null,
    account     text    not null,
    compute_ms  integer not null
) strict;

-- With the milliseconds: the sum is read from the index alone.
create index account_day_sum on account_day (day, account, compute_ms);

create table api_key (
    id            text    primary key,
    account       text    not null references account (id),
    name          text    not null,
    hint          text    not null,
    digest        text    not null unique,
    scopes        text    not null,
    created_at    integer not null,
    revoked_at    integer,
    last_used_at  integer
) strict, without rowid;

create index api_key_account on api_key (account);

-- What is small comes first, what may be long (request, result) last: SQLite reads a row from its
-- start and never touches the overflow pages of columns that nobody asked for.
create table job (
    number            integer primary key,
    id                text    not null unique,
    account           text    not null,
    status            text    not null check (status in ('queued', 'processing', 'completed', 'failed', 'canceled')),
    engine            text    not null,
    lane              text    not null,
    priority          integer not null,
    created_at        integer not null,
    started_at        integer,
    completed_at      integer,
    run_at            integer not null,
    deadline_at       integer,
    retained_until    integer not null,
    epoch             integer not null default 0,
    crash_count       integer not null default 0,
    retry_count       integer not null default 0,
    sequence          integer not null default 0,
    lease_until       integer,
    worker            text,
    cancel_requested  integer not null default 0 check (cancel_requested in (0, 1)),
    cached            integer not null default 0 check (cached in (0, 1)),
    removed           integer not null default 0 check (removed in (0, 1)),
    stage             text,
    fraction          real,
    compute_time_ms   integer not null default 0,
    peak_rss_bytes    integer not null default 0,
    error_code        text,
    work_key          text,
    tags              text    not null,
    error             text,
    request           text    not null,
    result            text,
    check ((status = 'processing') = (lease_until is not null)),
    check ((status in ('completed', 'failed', 'canceled')) = (completed_at is not null)),
    check ((status = 'completed') = (result is not null)),
    check ((status = 'failed') = (error is not null and error_code is not null))
) strict;

-- The claim jumps from account to account, and takes of each from its start: finished jobs are not in it.
create index job_ready on job (lane, account, priority desc, run_at, number) where status = 'queued';
-- Only jobs that are tried again wait for a time: the few of them are found without the queue.
create index job_delayed on job (lane, run_at) where status = 'queued' and run_at > created_at;
create index job_overdue on job (deadline_at) where status = 'queued' and deadline_at is not null;
-- "is not null" and not "status = 'processing'": a predicate that fenced writes do not imply, so
-- that no planner takes this index in place of the primary key (measured on PostgreSQL).
create index job_lease on job (lease_until) where lease_until is not null;
-- What past jobs of an engine took, the latest first. "cached" keeps it apart from all queries for one job.
create index job_timed on job (engine, completed_at) where status = 'completed' and cached = 0;
create index job_lapsed on job (retained_until) where removed = 0;
create index job_spent on job (retained_until, number) where removed = 1;
create index job_account on job (account, number);
-- Made after job_account: of two indexes that begin with the account SQLite takes the later one, as long as
-- it has no statistics. Else a count of what an account has running reads all that it ever had.
create index job_running on job (account, lane) where lease_until is not null;
-- Equal work: what of it runs (predicate as job_lease), and what of it is done and still has its files.
create index job_work_running on job (account, work_key) where lease_until is not null and work_key is not null;
create index job_work_done on job (account, work_key)
    where status = 'completed' and removed = 0 and work_key is not null;

-- One row a claim. Open (no outcome) while the attempt runs, and for ever if its worker died with
-- the whole machine and nobody ever took it over.
create table attempt (
    job_id           text    not null references job (id),
    epoch            integer not null,
    worker           text    not null,
    started_at       integer not null,
    ended_at         integer,
    outcome          text    check (outcome in ('completed', 'failed', 'retried', 'canceled', 'released')),
    code             text,
    compute_time_ms  integer,
    peak_rss_bytes   integer,
    primary key (job_id, epoch),
    check ((outcome is null) = (ended_at is null))
) strict, without rowid;

create trigger attempt_is_closed_once before update on attempt
when old.outcome is not null
    or new.job_id is not old.job_id or new.epoch is not old.epoch
    or new.worker is not old.worker or new.started_at is not old.started_at
begin
    select raise(abort, 'an attempt is closed once and never changed');
end;

-- derived is part of the key: what a client writes can never meet what we derive.
create table idempotency (
    account      text    not null,
    route        text    not null,
    derived      integer not null check (derived in (0, 1)),
    key          text    not null,
    fingerprint  text    not null,
    job_id       text    not null references job (id),
    bound_at     integer not null,
    primary key (account, route, derived, key)
) strict, without rowid;

-- A job that is pruned takes its keys along.
create index idempotency_job on idempotency (job_id);

-- autoincrement: a number is never given twice, so "later" stays later.
create table event (
    number    integer primary key autoincrement,
    id        text    not null unique,
    account   text    not null,
    job_id    text    references job (id),
    sequence  integer,
    type      text    not null,
    at        integer not null,
    position  integer,
    body      text    not null,
    announce  text,
    unique (job_id, sequence),
    check ((job_id is null) = (sequence is null))
) strict;

create unique index event_terminal on event (job_id)
    where type in ('job.completed', 'job.failed', 'job.canceled');
create index event_unplanned on event (number) where position is null;
-- What is about no job goes when its own time has come.
create index event_of_no_job on event (at) where sequence is null;
create unique index event_feed on event (account, position) where position is not null;

create trigger event_is_immutable before update on event
when old.position is not null
    or new.number is not old.number or new.id is not old.id or new.account is not old.account
    or new.job_id is not old.job_id or new.sequence is not old.sequence or new.type is not old.type
    or new.at is not old.at or new.body is not old.body or new.announce is not old.announce
begin
    select raise(abort, 'an event is given its position once and never changed');
end;

-- The last position given, in one row: whoever updates it is the one sequencer of that moment.
create table feed (
    one       integer primary key check (one = 1),
    position  integer not null
) strict;

insert into feed (one, position) values (1, 0);

-- Where an account's deliveries go. origin tells how it came here: 'job' is a job's webhook_url, one row a
-- URL, signed with the account's own secret; 'account' was registered, and has what follows changed_at.
-- turn is the number of the latest attempt made to it: the lowest goes first. standing is what to expect of
-- the next (0 quick, 1 new, 2 slow). line_at is when the next delivery may be claimed, null while none may
-- be; every command that could change that reckons it anew, so that a claim looks at nobody who has nothing
-- to send. health is what its latest failures say of it (webhooks/breaker.py), null while there are none.
-- parked_at: since when its pending deliveries are parked; nothing is written to them for that. pace_ms is
-- the time between two attempts while it recovers, null while it need not, and paced_at when the next may
-- begin by that or by rate_per_second. healing: dead
-- letters of an outage wait to be sent again.
create table endpoint (
    number           integer primary key,
    id               text    not null unique,
    account          text    not null,
    url              text    not null,
    host             text    not null,
    origin           text    not null check (origin in ('job', 'account')),
    status           text    not null default 'active'
        check (status in ('active', 'paused', 'disabled', 'removed')),
    turn             integer not null default 0,
    held_until       integer not null default 0,
    standing         integer not null default 1 check (standing in (0, 1, 2)),
    line_at          integer,
    in_flight_max    integer not null default 4 check (in_flight_max > 0),
    health           text,
    parked_at        integer,
    pace_ms          real check (pace_ms > 0),
    paced_at         real not null default 0,
    healing          integer not null default 0 check (healing in (0, 1)),
    created_at       integer not null,
    changed_at       integer not null,
    description      text    not null default '',
    events           text,
    signing          text    not null default 'hmac' check (signing in ('hmac', 'ed25519')),
    secrets          text,
    retry_statuses   text,
    rate_per_second  real check (rate_per_second > 0),
    check (status in ('active', 'removed') or parked_at is not null),
    check ((origin = 'account') = (secrets is not null))
) strict;

create unique index endpoint_url on endpoint (account, url) where origin = 'job';
create index endpoint_registered on endpoint (account, number) where origin = 'account';
create index endpoint_parked on endpoint (parked_at) where parked_at is not null;
create index endpoint_healing on endpoint (number) where healing = 1;
create index endpoint_removed on endpoint (number) where status = 'removed';
-- host comes along so that a claim can pass over a full one without reading its endpoints.
create index endpoint_line on endpoint (account, standing, line_at, turn, number, host)
    where line_at is not null;
create index endpoint_untried on endpoint (account, host) where standing = 1;
create index endpoint_next on endpoint (line_at) where line_at is not null;

create table delivery (
    number           integer primary key,
    id               text    not null unique,
    account          text    not null,
    event_number     integer not null references event (number),
    endpoint_number  integer not null references endpoint (number),
    job_id           text,
    type             text    not null,
    status           text    not null
        check (status in ('pending', 'leased', 'delivered', 'dead', 'canceled')),
    attempts         integer not null default 0,
    retries_spent    integer not null default 0,
    created_at       integer not null,
    next_at          integer not null,
    lease_until      integer,
    finished_at      integer,
    reason           text,
    discard_reason   text,
    healed           integer not null default 0 check (healed in (0, 1)),
    message          text,
    unique (event_number, endpoint_number),
    check ((status = 'leased') = (lease_until is not null)),
    check ((status in ('delivered', 'dead', 'canceled')) = (finished_at is not null)),
    check (status <> 'dead' or reason is not null),
    check (message is not null or finished_at is not null)
) strict;

create index delivery_pending on delivery (endpoint_number, next_at, event_number) where status = 'pending';
-- status in the key as well as in the condition: with one more column to match, a planner without
-- statistics takes this index and not delivery_endpoint, which would read an endpoint's whole history.
create index delivery_leased on delivery (status, endpoint_number) where status = 'leased';
-- Finds what of the same job still stands before a delivery.
create index delivery_unfinished on delivery (endpoint_number, job_id, event_number) where finished_at is null;
create index delivery_finished on delivery (finished_at) where finished_at is not null;
create index delivery_dead on delivery (status, account, endpoint_number, reason) where status = 'dead';
create index delivery_account on delivery (account, number);
-- What an outage has killed and nobody sent again yet, in the order of its events.
create index delivery_heal on delivery (endpoint_number, event_number)
    where status = 'dead' and healed = 0 and message is not null and reason in ('exhausted', 'endpoint_down');
create index delivery_payload on delivery (finished_at) where finished_at is not null and message is not null;
create index delivery_job on delivery (job_id);
create index delivery_endpoint on delivery (endpoint_number);

-- autoincrement, since endpoint.turn is measured by it.
create table delivery_attempt (
    number            integer primary key autoincrement,
    delivery_number   integer not null references delivery (number) on delete cascade,
    attempt           integer not null,
    started_at        integer not null,
    outcome           text,
    http_status       integer,
    error             text,
    duration_ms       integer,
    timings           text    not null default '{}',
    body_sha256       text,
    response_excerpt  blob    not null default x'',
    hint              text,
    unique (delivery_number, attempt)
) strict;

-- But for what it was answered, which is payload and goes before the rest.
create trigger delivery_attempt_is_closed_once before update on delivery_attempt
when old.outcome is not null and (
        new.response_excerpt <> x''
        or new.outcome is not old.outcome
        or new.http_status is not old.http_status
        or new.error is not old.error
        or new.duration_ms is not old.duration_ms
        or new.timings is not old.timings
        or new.body_sha256 is not old.body_sha256
        or new.hint is not old.hint
    )
    or new.number is not old.number or new.delivery_number is not old.delivery_number
    or new.attempt is not old.attempt or new.started_at is not old.started_at
begin
    select raise(abort, 'an attempt is closed once and never changed');
end;

-- What is left of a job that was pruned, so that a look at it is answered 410 and not 404; number is the
-- job's, so that a page of a list goes on from it.
create table tombstone (
    id       text    primary key,
    account  text    not null,
    number   integer not null,
    gone_at  integer not null
) strict, without rowid;

create index tombstone_gone on tombstone (gone_at);

create table file (
    id          text    primary key,
    account     text    not null,
    key         text    not null,
    sha256      text    not null,
    size_bytes  integer not null,
    created_at  integer not null,
    expires_at  integer not null
) strict, without rowid;

create index file_expiry on file (expires_at);

-- A delivery as people see it: with its endpoint, and whether a later event of its job was delivered there.
create view told_delivery as
select
    delivery.*,
    endpoint.id as endpoint_id, endpoint.url, endpoint.status as endpoint_status,
    endpoint.parked_at, endpoint.held_until,
    case
        when delivery.status = 'dead' and exists (
            select 1
            from delivery as later
            where later.job_id = delivery.job_id
                and later.endpoint_number = delivery.endpoint_number
                and later.event_number > delivery.event_number
                and later.status = 'delivered'
        ) then 1 else 0
    end as overtaken,
    event.id as event_id
from delivery
join endpoint on endpoint.number = delivery.endpoint_number
join event on event.number = delivery.event_number;
