-- Deliveries, many at a time: the queries of postgres/deliveries.sql, row by row or from a JSON text.

-- name: open_delivery_attempts(attempts)
-- Before anything is sent: an attempt that a crash cut short stands on record, without an outcome. Numbered
-- in the order given: an endpoint's turn goes by them.
insert into delivery_attempt (delivery_number, attempt, started_at)
select opened.value ->> 'delivery_number', opened.value ->> 'attempt', opened.value ->> 'started_at'
from json_each(cast(:attempts as text)) as opened
order by opened.key
returning number, delivery_number;

-- name: take_turns*!
-- The number of its latest attempt. The endpoint leaves the line, and rejoins it at its end, not before its
-- pace allows.
update endpoint set turn = :turn, line_at = null, paced_at = :paced_at where number = :endpoint_number;

-- name: end_delivery_attempts(endings)
-- No row back: the delivery was claimed again or is finished; this attempt's result is not taken.
-- Pending is taken too: freed when its lease ran out (the store was away for long), but in nobody's
-- hands. Else what was answered with a 2xx would be sent again. The attempt must still be open: a
-- retry that was settled, or a re-driven letter, is pending with the same number of attempts. In one
-- statement: one by one they took half as long again.
update delivery
set status = ending.value ->> 'status',
    lease_until = null,
    next_at = coalesce(ending.value ->> 'next_at', delivery.next_at),
    retries_spent = delivery.retries_spent + (ending.value ->> 'retries'),
    finished_at = ending.value ->> 'finished_at',
    reason = ending.value ->> 'reason'
from json_each(cast(:endings as text)) as ending
where delivery.id = ending.value ->> 'delivery_id'
    and delivery.attempts = ending.value ->> 'attempt'
    and delivery.status in ('leased', 'pending')
    and exists (
        select 1
        from delivery_attempt
        where delivery_attempt.delivery_number = delivery.number
            and delivery_attempt.attempt = delivery.attempts
            and delivery_attempt.outcome is null
    )
returning
    id as delivery_id,
    number,
    endpoint_number,
    healed,
    (
        select delivery_attempt.started_at
        from delivery_attempt
        where delivery_attempt.delivery_number = delivery.number and delivery_attempt.attempt = delivery.attempts
    ) as started_at;

-- name: close_delivery_attempts*!
-- Only called behind the guard above; a trigger refuses to close an attempt twice.
update delivery_attempt
set outcome = :outcome,
    http_status = :http_status,
    error = :error,
    duration_ms = :duration_ms,
    timings = :timings,
    body_sha256 = :body_sha256,
    response_excerpt = :response_excerpt,
    hint = :hint
where delivery_number = :delivery_number and attempt = :attempt;

-- name: rejoin_line*!
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
            when max(
                waiting.next_at,
                endpoint.held_until,
                case
                    when endpoint.pace_ms is null and endpoint.rate_per_second is null then 0
                    else cast(endpoint.paced_at as integer) + (endpoint.paced_at > cast(endpoint.paced_at as integer))
                end
            ) > :now then max(
                waiting.next_at,
                endpoint.held_until,
                case
                    when endpoint.pace_ms is null and endpoint.rate_per_second is null then 0
                    else cast(endpoint.paced_at as integer) + (endpoint.paced_at > cast(endpoint.paced_at as integer))
                end
            )
            when endpoint.line_at <= :now then endpoint.line_at
            else :now
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
where number = :endpoint_number;

-- name: doubt_untried(endpoint_number, limit)!
-- An endpoint was slow: those at its host that were not tried yet and wait are to be expected slow too.
-- Whoever comes to that host later does not wait behind them. Each is doubted once at most.
update endpoint
set standing = 2
where number in (
    select untried.number
    from endpoint as slow
    join endpoint as untried on untried.account = slow.account and untried.host = slow.host
    where slow.number = :endpoint_number and untried.standing = 1
    limit :limit
);
