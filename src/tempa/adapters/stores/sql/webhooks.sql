-- Deliveries: from the event log to an answer, or to the dead letters. The same conventions as in
-- jobs.sql. The guard of every result: (delivery, attempt, unfinished).

-- name: unplanned(after, limit)
-- Events that fan-out has not seen, in the order they were written.
select * from event where position is null and number > :after order by number limit :limit;

-- name: unplanned_number(event_id)$
-- Null when the event has its position: it was fanned out before, and nothing is done twice. By its id
-- and not by "position is null", whose index an idle snapshot fills with dead entries (see jobs.sql).
select case when position is null then number end from event where id = :event_id;

-- name: place_event(number, position)!
-- The one column of an event that is ever written after it; a trigger refuses to write it twice.
update event set position = :position where number = :number;

-- name: endpoint_number(account, url)$
-- Looked up before it is inserted: nearly always it is there.
select number from endpoint where account = :account and url = :url;

-- name: insert_endpoint(id, account, url, host, origin, now)!
-- Two processes may meet the same new URL at once; both then read the row of the first.
insert into endpoint (id, account, url, host, origin, created_at)
values (:id, :account, :url, :host, :origin, :now)
on conflict (account, url) do nothing;

-- name: insert_delivery(id, account, event_number, endpoint_number, job_id, type, now, message)!
-- Once means a unique index: one delivery for an event and an endpoint, whoever asks how often.
insert into delivery (
    id, account, event_number, endpoint_number, job_id, type, status, created_at, next_at, message
)
values (:id, :account, :event_number, :endpoint_number, :job_id, :type, 'pending', :now, :now, :message)
on conflict (event_number, endpoint_number) do nothing;

-- name: due_deliveries(now, in_flight_max, full_accounts, full_hosts, limit)
-- Whose turn it is. Of each account and standing the first endpoints in the line, :limit at most, offer
-- their few oldest deliveries: a thousand URLs cost no more than :limit, a backlog of 100,000 at one URL
-- no more than one of four, and neither hides anybody else. Of many accounts not all are looked at:
-- whoever comes first is taken, and the caller asks again. Where it has no room ("standing/account",
-- "standing/account/host") is passed over within the index: what hangs behind a full host costs a claim
-- 0.3 us an endpoint. `place` counts what an endpoint has in flight too, so that all get their first
-- before any gets its second; accounts take turns, and in each the endpoint that was served longest ago
-- comes first. A delivery waits for the unfinished ones of its job at its endpoint.
with recursive account (name) as (
    select min(account) from endpoint where line_at is not null
    union all
    select (
        select min(further.account)
        from endpoint as further
        where further.line_at is not null and further.account > account.name
    )
    from account
    where account.name is not null
),
waiting (number, place, turn) as (
    select
        endpoint.number,
        row_number() over (
            partition by endpoint.account, endpoint.standing
            order by endpoint.line_at, endpoint.turn, endpoint.number
        ),
        endpoint.turn
    from account
    cross join (select 0 as standing union all select 1 union all select 2) as rank
    join endpoint on endpoint.number in (
        select ready.number
        from endpoint as ready
        where ready.account = account.name
            and ready.standing = rank.standing
            and ready.line_at <= :now
            and ready.standing || '/' || ready.account || '/' || ready.host not in (
                select value from json_each(cast(:full_hosts as text))
            )
        order by ready.line_at, ready.turn, ready.number
        limit :limit
    )
    where rank.standing || '/' || account.name not in (select value from json_each(cast(:full_accounts as text)))
),
open_endpoint (number, account, host, standing, turn, in_flight) as (
    select endpoint.number, endpoint.account, endpoint.host, endpoint.standing, endpoint.turn, (
        select count(*)
        from delivery as leased
        where leased.status = 'leased' and leased.endpoint_number = endpoint.number
    )
    from (select number from waiting order by place, turn, number limit 4 * :limit) as chosen
    join endpoint on endpoint.number = chosen.number
),
offered (number, endpoint_number, account, host, standing, turn, place) as (
    select
        delivery.number,
        open_endpoint.number,
        open_endpoint.account,
        open_endpoint.host,
        open_endpoint.standing,
        open_endpoint.turn,
        open_endpoint.in_flight + row_number() over (
            partition by open_endpoint.number order by delivery.next_at, delivery.event_number
        )
    from open_endpoint
    join delivery on delivery.number in (
        select due.number
        from delivery as due
        where due.endpoint_number = open_endpoint.number
            and due.status = 'pending'
            and due.next_at <= :now
            and not exists (
                select 1
                from delivery as earlier
                where earlier.endpoint_number = due.endpoint_number
                    and earlier.job_id = due.job_id
                    and earlier.event_number < due.event_number
                    and earlier.finished_at is null
            )
        order by due.next_at, due.event_number
        limit :in_flight_max
    )
)
select number, endpoint_number, account, host, standing
from offered
where offered.place <= :in_flight_max
order by
    offered.place,
    row_number() over (partition by offered.account order by offered.place, offered.turn, offered.number),
    offered.turn,
    offered.number;

-- name: next_in_line(now)$
-- When the first of those that are not due yet will be. Those that are due and were not taken wait for
-- room or for a free endpoint, and what makes that rings.
select min(line_at) from endpoint where line_at > :now;

-- name: lease_delivery(number, lease_until)^
-- Counts the attempt as it begins: the number is the fence of its result.
update delivery
set status = 'leased', lease_until = :lease_until, attempts = attempts + 1
where number = :number and status || '' = 'pending'
returning
    *,
    (select endpoint.url from endpoint where endpoint.number = delivery.endpoint_number) as url,
    (select event.id from event where event.number = delivery.event_number) as event_id;

-- name: open_delivery_attempt(delivery_number, attempt, started_at)$
-- Before anything is sent: an attempt that a crash cut short stands on record, without an outcome.
insert into delivery_attempt (delivery_number, attempt, started_at)
values (:delivery_number, :attempt, :started_at)
returning number;

-- name: take_turn(endpoint_number, turn)!
-- The number of its latest attempt. The endpoint leaves the line, and rejoins it at its end.
update endpoint set turn = :turn, line_at = null where number = :endpoint_number;

-- name: end_delivery_attempt(delivery_id, attempt, status, next_at, retries, finished_at, reason)^
-- No row back: the delivery was claimed again or is finished; this attempt's result is not taken.
-- Pending is taken too: freed when its lease ran out (the store was away for long), but in nobody's
-- hands. Else what was answered with a 2xx would be sent again. The attempt must still be open: a
-- retry that was settled, or a re-driven letter, is pending with the same number of attempts.
update delivery
set status = :status,
    lease_until = null,
    next_at = coalesce(:next_at, next_at),
    retries_spent = retries_spent + :retries,
    finished_at = :finished_at,
    reason = :reason
where id = :delivery_id
    and attempts = :attempt
    and status in ('leased', 'pending')
    and exists (
        select 1
        from delivery_attempt
        where delivery_attempt.delivery_number = delivery.number
            and delivery_attempt.attempt = :attempt
            and delivery_attempt.outcome is null
    )
returning number, endpoint_number;

-- name: close_delivery_attempt(delivery_number, attempt, outcome, http_status, error, duration_ms, timings, body_sha256, response_excerpt)!
-- Only called behind the guard above; a trigger refuses to close an attempt twice.
update delivery_attempt
set outcome = :outcome,
    http_status = :http_status,
    error = :error,
    duration_ms = :duration_ms,
    timings = :timings,
    body_sha256 = :body_sha256,
    response_excerpt = :response_excerpt
where delivery_number = :delivery_number and attempt = :attempt;

-- name: hold_endpoint(endpoint_number, held_until)!
-- A hold only ever grows: two answers may disagree, and the later end is the safe one.
update endpoint set held_until = :held_until where number = :endpoint_number and held_until < :held_until;

-- name: note_standing(endpoint_number, standing)!
-- Nearly always what it was: then nothing is written.
update endpoint set standing = :standing where number = :endpoint_number and standing <> :standing;

-- name: free_deliveries(lapsed_by)
-- Leases that ran out, or all of them (null) when their holder is known to be dead. The cut-short
-- attempt keeps its number and spends no retry: that it was cut short is not the receiver's doing.
update delivery
set status = 'pending', lease_until = null
where status = 'leased' and (cast(:lapsed_by as bigint) is null or lease_until <= :lapsed_by)
returning endpoint_number;

-- name: list_deliveries(account, status, job_id, endpoint_id, before, limit)
-- Ids of deliveries all have one prefix: their order is that of time.
select delivery.*, endpoint.id as endpoint_id, endpoint.url, event.id as event_id
from delivery
join endpoint on endpoint.number = delivery.endpoint_number
join event on event.number = delivery.event_number
where delivery.account = :account
    and (cast(:before as text) is null or delivery.id < :before)
    and (cast(:status as text) is null or delivery.status = :status)
    and (cast(:job_id as text) is null or delivery.job_id = :job_id)
    and (cast(:endpoint_id as text) is null or endpoint.id = :endpoint_id)
order by delivery.id desc
limit :limit;

-- name: delivery_of_account(account, delivery_id)^
-- As with jobs: another account's delivery is not found.
select delivery.*, endpoint.id as endpoint_id, endpoint.url, event.id as event_id
from delivery
join endpoint on endpoint.number = delivery.endpoint_number
join event on event.number = delivery.event_number
where delivery.id = :delivery_id and delivery.account = :account;

-- name: delivery_attempts(delivery_number)
-- All of them, those of earlier rounds too.
select * from delivery_attempt where delivery_number = :delivery_number order by attempt;

-- name: dead_groups(account)
-- Dead letters by endpoint and reason, with the answer that the latest of them ended with.
select
    endpoint.id || '.' || dead.reason as id,
    endpoint.id as endpoint_id,
    endpoint.url,
    dead.reason,
    count(*) as letters,
    min(dead.finished_at) as oldest,
    max(dead.finished_at) as newest,
    (
        select last.http_status
        from delivery as latest
        join delivery_attempt as last on last.delivery_number = latest.number and last.attempt = latest.attempts
        where latest.status = 'dead'
            and latest.account = :account
            and latest.endpoint_number = dead.endpoint_number
            and latest.reason = dead.reason
        order by latest.finished_at desc, latest.number desc
        limit 1
    ) as last_http_status,
    (
        select last.error
        from delivery as latest
        join delivery_attempt as last on last.delivery_number = latest.number and last.attempt = latest.attempts
        where latest.status = 'dead'
            and latest.account = :account
            and latest.endpoint_number = dead.endpoint_number
            and latest.reason = dead.reason
        order by latest.finished_at desc, latest.number desc
        limit 1
    ) as last_error
from delivery as dead
join endpoint on endpoint.number = dead.endpoint_number
where dead.status = 'dead' and dead.account = :account
group by endpoint.id, endpoint.url, dead.endpoint_number, dead.reason
order by newest desc, endpoint.url, dead.reason;

-- name: dead_letters(account, ids, group, endpoint_id, since, before, limit)
-- The same conditions as in dead_numbers, as rows for people, in pages.
select delivery.*, endpoint.id as endpoint_id, endpoint.url, event.id as event_id
from delivery
join endpoint on endpoint.number = delivery.endpoint_number
join event on event.number = delivery.event_number
where delivery.status = 'dead'
    and delivery.account = :account
    and (cast(:ids as text) is null or delivery.id in (select value from json_each(cast(:ids as text))))
    and (cast(:group as text) is null or endpoint.id || '.' || delivery.reason = :group)
    and (cast(:endpoint_id as text) is null or endpoint.id = :endpoint_id)
    and (cast(:since as bigint) is null or delivery.finished_at >= :since)
    and (cast(:before as text) is null or delivery.id < :before)
order by delivery.id desc
limit :limit;

-- name: dead_numbers(account, ids, group, endpoint_id, since)
-- What a re-drive or a discard means, oldest event first. Read once; then written in slices.
select delivery.number, delivery.endpoint_number
from delivery
join endpoint on endpoint.number = delivery.endpoint_number
where delivery.status = 'dead'
    and delivery.account = :account
    and (cast(:ids as text) is null or delivery.id in (select value from json_each(cast(:ids as text))))
    and (cast(:group as text) is null or endpoint.id || '.' || delivery.reason = :group)
    and (cast(:endpoint_id as text) is null or endpoint.id = :endpoint_id)
    and (cast(:since as bigint) is null or delivery.finished_at >= :since)
order by delivery.event_number, delivery.number;

-- name: count_deliveries()
-- What is not over and what needs somebody, each from its partial index; what was delivered is not read.
select status, count(*) as deliveries from delivery where finished_at is null group by status
union all
select status, count(*) as deliveries from delivery where status = 'dead' group by status;

-- name: prune_deliveries(before, limit)
-- In slices, so that the writer is never held up for long; attempts go with their delivery.
delete from delivery
where number in (
    select number from delivery where finished_at < :before order by finished_at limit :limit
)
returning endpoint_number;

-- name: prune_endpoint(endpoint_number, now)!
-- A URL with a job number in it is an endpoint a job: with its last delivery it goes. "limit 1" and not
-- "exists", for which PostgreSQL without statistics gathers all of an endpoint's deliveries first.
delete from endpoint
where number = :endpoint_number
    and origin = 'job'
    and held_until <= :now
    and (select 1 from delivery where delivery.endpoint_number = endpoint.number limit 1) is null;
