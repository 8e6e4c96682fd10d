-- Deliveries, many at a time: the queries of sqlite/deliveries.sql, set by set. Each parameter is an array, a
-- column of the rows.

-- name: open_delivery_attempts(delivery_number, attempt, started_at)
-- Before anything is sent: an attempt that a crash cut short stands on record, without an outcome. Numbered
-- in the order given: an endpoint's turn goes by them.
insert into delivery_attempt (delivery_number, attempt, started_at)
select delivery_number, attempt, started_at
from unnest(
    cast(:delivery_number as bigint[]), cast(:attempt as integer[]), cast(:started_at as bigint[])
) with ordinality as opened (delivery_number, attempt, started_at, place)
order by place
returning number, delivery_number;

-- name: take_turns(endpoint_number, turn, paced_at)!
-- The number of its latest attempt. The endpoint leaves the line, and rejoins it at its end, not before its
-- pace allows.
update endpoint
set turn = taken.turn, line_at = null, paced_at = taken.paced_at
from unnest(
    cast(:endpoint_number as bigint[]), cast(:turn as bigint[]), cast(:paced_at as double precision[])
) as taken (endpoint_number, turn, paced_at)
where endpoint.number = taken.endpoint_number;

-- name: end_delivery_attempts(delivery_id, attempt, status, next_at, retries, finished_at, reason)
-- No row back: the delivery was claimed again or is finished; this attempt's result is not taken.
-- Pending is taken too: freed when its lease ran out (the store was away for long), but in nobody's
-- hands. Else what was answered with a 2xx would be sent again. The attempt must still be open: a
-- retry that was settled, or a re-driven letter, is pending with the same number of attempts. Locked in
-- one order, so that two batches never wait for each other.
with held as (
    select delivery.number, attempt.started_at, ending.*
    from unnest(
        cast(:delivery_id as text[]), cast(:attempt as integer[]), cast(:status as text[]), cast(:next_at as bigint[]),
        cast(:retries as integer[]), cast(:finished_at as bigint[]), cast(:reason as text[])
    ) as ending (delivery_id, attempt, status, next_at, retries, finished_at, reason)
    join delivery
        on delivery.id = ending.delivery_id
        and delivery.attempts = ending.attempt
        and delivery.status in ('leased', 'pending')
    join delivery_attempt as attempt
        on attempt.delivery_number = delivery.number
        and attempt.attempt = ending.attempt
        and attempt.outcome is null
    order by delivery.id
    for update of delivery
)
update delivery
set status = held.status,
    lease_until = null,
    next_at = coalesce(held.next_at, delivery.next_at),
    retries_spent = delivery.retries_spent + held.retries,
    finished_at = held.finished_at,
    reason = held.reason
from held
where delivery.number = held.number
returning delivery.id as delivery_id, delivery.number, delivery.endpoint_number, delivery.healed, held.started_at;

-- name: close_delivery_attempts(delivery_number, attempt, outcome, http_status, error, duration_ms, timings, body_sha256, response_excerpt, hint)!
-- Only called behind the guard above; a trigger refuses to close an attempt twice.
update delivery_attempt
set outcome = closing.outcome,
    http_status = closing.http_status,
    error = closing.error,
    duration_ms = closing.duration_ms,
    timings = closing.timings,
    body_sha256 = closing.body_sha256,
    response_excerpt = closing.response_excerpt,
    hint = closing.hint
from unnest(
    cast(:delivery_number as bigint[]), cast(:attempt as integer[]), cast(:outcome as text[]),
    cast(:http_status as integer[]), cast(:error as text[]), cast(:duration_ms as bigint[]),
    cast(:timings as text[]), cast(:body_sha256 as text[]), cast(:response_excerpt as bytea[]),
    cast(:hint as text[])
) as closing (
    delivery_number, attempt, outcome, http_status, error, duration_ms, timings, body_sha256, response_excerpt, hint
)
where delivery_attempt.delivery_number = closing.delivery_number and delivery_attempt.attempt = closing.attempt;

-- name: rejoin_line(endpoint_number, now)!
-- Reckons anew when an endpoint's next delivery may be claimed, after whatever may have changed that: at
-- its earliest pending one that waits for no other of its job, not before a hold is over or its pace allows,
-- and not while as many are in flight as may be: one, while deliveries are parked, which probes. Who stands
-- in the line keeps its place. How many are in flight is counted once and not beside each that waits: an
-- endpoint that has all it may have would else be asked for every delivery of its backlog.
update endpoint
set line_at = case
    when endpoint.status = 'active'
        and (
            select count(*)
            from delivery as leased
            where leased.status = 'leased' and leased.endpoint_number = endpoint.number
        ) < case when endpoint.parked_at is null then endpoint.in_flight_max else 1 end
    then (
        select case
            when greatest(
                waiting.next_at,
                endpoint.held_until,
                case
                    when endpoint.pace_ms is null and endpoint.rate_per_second is null then 0
                    else cast(ceil(endpoint.paced_at) as bigint)
                end
            ) > touched.now then greatest(
                waiting.next_at,
                endpoint.held_until,
                case
                    when endpoint.pace_ms is null and endpoint.rate_per_second is null then 0
                    else cast(ceil(endpoint.paced_at) as bigint)
                end
            )
            when endpoint.line_at <= touched.now then endpoint.line_at
            else touched.now
        end
        from delivery as waiting
        where waiting.endpoint_number = endpoint.number
            and waiting.status = 'pending'
            and not exists (
                select 1
                from delivery as earlier
                where earlier.endpoint_number = waiting.endpoint_number
                    and earlier.job_id = waiting.job_id
                    and earlier.event_number < waiting.event_number
                    and earlier.finished_at is null
            )
        order by waiting.next_at, waiting.event_number
        limit 1
    )
end
from unnest(cast(:endpoint_number as bigint[]), cast(:now as bigint[])) as touched (endpoint_number, now)
where endpoint.number = touched.endpoint_number;

-- name: doubt_untried(endpoint_number, limit)!
-- An endpoint was slow: those at its host that were not tried yet and wait are to be expected slow too.
-- Whoever comes to that host later does not wait behind them. Each is doubted once at most.
-- Those in somebody's hands are left to the next slow one.
update endpoint
set standing = 2
where number in (
    select untried.number
    from endpoint as slow
    join endpoint as untried on untried.account = slow.account and untried.host = slow.host
    where slow.number = :endpoint_number and untried.standing = 1
    limit :limit
    for update of untried skip locked
);
