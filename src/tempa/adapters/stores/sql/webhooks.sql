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
select number from endpoint where account = :account and url = :url and origin = 'job';

-- name: registered_numbers(ids)
-- The endpoints of these ids that take deliveries: of a removed one there is only its history.
select id, number
from endpoint
where id in (select value from json_each(cast(:ids as text))) and status <> 'removed';

-- name: insert_endpoint(id, account, url, host, origin, now)!
-- Two processes may meet the same new URL at once; both then read the row of the first.
insert into endpoint (id, account, url, host, origin, created_at, changed_at)
values (:id, :account, :url, :host, :origin, :now, :now)
on conflict (account, url) where origin = 'job' do nothing;

-- name: insert_delivery(id, account, event_number, endpoint_number, job_id, type, now, message)!
-- Once means a unique index: one delivery for an event and an endpoint, whoever asks how often.
insert into delivery (
    id, account, event_number, endpoint_number, job_id, type, status, created_at, next_at, message
)
values (:id, :account, :event_number, :endpoint_number, :job_id, :type, 'pending', :now, :now, :message)
on conflict (event_number, endpoint_number) do nothing;

-- name: due_deliveries(now, offered_max, full_accounts, full_hosts, limit)
-- Whose turn it is. Of each account and standing the first endpoints in the line, :limit at most, offer
-- their :offered_max oldest deliveries: a thousand URLs cost no more than :limit, a backlog of 100,000 at one URL
-- no more than one of four, and neither hides anybody else. Of many accounts not all are looked at:
-- whoever comes first is taken, and the caller asks again. Where it has no room ("standing/account",
-- "standing/account/host") is passed over within the index: what hangs behind a full host costs a claim
-- 0.3 us an endpoint. `place` counts what an endpoint has in flight too, so that all get their first
-- before any gets its second; accounts take turns, and in each the endpoint that was served longest ago
-- comes first. A delivery waits for the unfinished ones of its job at its endpoint. Where deliveries are
-- parked one at a time is offered, which probes.
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
open_endpoint (number, account, host, standing, turn, pace_ms, rate_per_second, paced_at, in_flight_max, in_flight) as (
    select
        endpoint.number,
        endpoint.account,
        endpoint.host,
        endpoint.standing,
        endpoint.turn,
        endpoint.pace_ms,
        endpoint.rate_per_second,
        endpoint.paced_at,
        case when endpoint.parked_at is null then endpoint.in_flight_max else 1 end,
        (
            select count(*)
            from delivery as leased
            where leased.status = 'leased' and leased.endpoint_number = endpoint.number
        )
    from (select number from waiting order by place, turn, number limit 4 * :limit) as chosen
    join endpoint on endpoint.number = chosen.number
),
offered (
    number, endpoint_number, account, host, standing, turn, pace_ms, rate_per_second, paced_at, in_flight_max, in_flight,
    place
) as (
    select
        delivery.number,
        open_endpoint.number,
        open_endpoint.account,
        open_endpoint.host,
        open_endpoint.standing,
        open_endpoint.turn,
        open_endpoint.pace_ms,
        open_endpoint.rate_per_second,
        open_endpoint.paced_at,
        open_endpoint.in_flight_max,
        open_endpoint.in_flight,
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
        limit :offered_max
    )
)
select number, endpoint_number, account, host, standing, pace_ms, rate_per_second, paced_at, in_flight
from offered
where offered.place <= offered.in_flight_max
order by
    offered.place,
    row_number() over (partition by offered.account order by offered.place, offered.turn, offered.number),
    offered.turn,
    offered.number;

-- name: next_in_line(now)$
-- When the first of those that are not due yet will be. Those that are due and were not taken wait for
-- room or for a free endpoint, and what makes that rings.
select min(line_at) from endpoint where line_at > :now;

-- name: lease_deliveries(numbers, lease_until)
-- Counts the attempt as it begins: the number is the fence of its result.
update delivery
set status = 'leased', lease_until = :lease_until, attempts = attempts + 1
where number in (select cast(value as bigint) from json_each(cast(:numbers as text))) and status || '' = 'pending'
returning *, (select event.id from event where event.number = delivery.event_number) as event_id;

-- name: note_health(endpoint_number, status, health, parked_at, held_until, pace_ms, healing, standing)!
-- What an attempt has changed of its endpoint, which is locked; nothing is written when it changed nothing.
-- parked_at is all that parks and frees deliveries, however many wait.
update endpoint
set status = :status,
    health = :health,
    parked_at = :parked_at,
    held_until = :held_until,
    pace_ms = :pace_ms,
    healing = :healing,
    standing = :standing
where number = :endpoint_number;
