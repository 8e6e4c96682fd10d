-- Registered endpoints: what their owners ask of them. How they fare is written in webhooks.sql. The same
-- conventions as in jobs.sql. Of a removed one the row stays as long as deliveries tell of it, and nobody is
-- shown it.

-- name: registered_endpoints(account)$
-- How many an account has.
select count(*) from endpoint where account = :account and origin = 'account' and status <> 'removed';

-- name: register_endpoint(id, account, url, host, description, events, signing, secrets, retry_statuses, in_flight_max, rate_per_second, now)!
-- Beside a job's endpoint of the same URL, if there is one: that is another, signed with another secret.
insert into endpoint (
    id, account, url, host, origin, description, events, signing, secrets, retry_statuses, in_flight_max,
    rate_per_second, created_at, changed_at
)
values (
    :id, :account, :url, :host, 'account', :description, :events, :signing, :secrets, :retry_statuses,
    :in_flight_max, :rate_per_second, :now, :now
);

-- name: endpoint_of_account(account, endpoint_id)^
-- A job's URL too. What waits is counted by the partial index of pending deliveries.
select endpoint.*, (
    select count(*)
    from delivery
    where delivery.endpoint_number = endpoint.number and delivery.status = 'pending'
) as pending
from endpoint
where endpoint.id = :endpoint_id and endpoint.account = :account and endpoint.status <> 'removed';

-- name: endpoint_anywhere(endpoint_id)^
-- Whosever it is: for what everybody may know of it, its public keys.
select endpoint.*, 0 as pending
from endpoint
where endpoint.id = :endpoint_id and endpoint.status <> 'removed';

-- name: list_endpoints(account, before, limit)
-- Registered ones only. Ids of endpoints all have one prefix: their order is that of time.
select endpoint.*, (
    select count(*)
    from delivery
    where delivery.endpoint_number = endpoint.number and delivery.status = 'pending'
) as pending
from endpoint
where endpoint.account = :account
    and endpoint.origin = 'account'
    and endpoint.status <> 'removed'
    and (cast(:before as text) is null or endpoint.id < :before)
order by endpoint.id desc
limit :limit;

-- name: subscriptions(accounts)
-- Who of these accounts wants to hear of which events, in the order in which they registered.
select id, account, events
from endpoint
where origin = 'account'
    and status <> 'removed'
    and account in (select value from json_each(cast(:accounts as text)))
order by account, number;

-- name: feed_end(account)$
-- From the end of the feed's index.
select max(position) from event where account = :account and position is not null;

-- name: change_endpoint(endpoint_number, url, host, description, events, secrets, retry_statuses, in_flight_max, rate_per_second, now)!
-- The whole row, as it was read behind its lock in this transaction, with what changes.
update endpoint
set url = :url,
    host = :host,
    description = :description,
    events = :events,
    secrets = :secrets,
    retry_statuses = :retry_statuses,
    in_flight_max = :in_flight_max,
    rate_per_second = :rate_per_second,
    changed_at = :now
where number = :endpoint_number;

-- name: pause_endpoint(endpoint_number, now)!
-- One that its receiver disabled stays so: nothing is sent to it either way.
update endpoint
set status = 'paused', parked_at = coalesce(parked_at, :now), changed_at = :now
where number = :endpoint_number and status = 'active';

-- name: resume_endpoint(endpoint_number, now)!
-- Its owner says otherwise than its answers. What they said is forgotten by begin_anew.
update endpoint
set status = 'active', changed_at = :now
where number = :endpoint_number and status <> 'removed';

-- name: begin_anew(endpoint_number, health, pace_ms)!
-- Whatever its answers said of it, by its breaker, a Retry-After or how slow they were.
update endpoint
set parked_at = case when status = 'active' then null else parked_at end,
    held_until = 0,
    standing = 1,
    health = :health,
    pace_ms = :pace_ms
where number = :endpoint_number;

-- name: remove_endpoint(endpoint_number, now)!
-- Nothing waits there any more, and nothing ever will.
update endpoint
set status = 'removed', parked_at = null, health = null, line_at = null, healing = 0, changed_at = :now
where number = :endpoint_number;

-- name: forget_endpoint(endpoint_number)!
-- One that no delivery tells of.
delete from endpoint
where number = :endpoint_number
    and (select 1 from delivery where delivery.endpoint_number = endpoint.number limit 1) is null;

-- name: waiting_deliveries(endpoint_number)$
-- One if any are left.
select 1
from delivery
where endpoint_number = :endpoint_number and finished_at is null
limit 1;

-- name: insert_test_delivery(id, account, event_id, endpoint_number, type, now, message)!
-- Planned with its event, in one transaction: it goes to this endpoint and to no other.
insert into delivery (
    id, account, event_number, endpoint_number, type, status, created_at, next_at, message
)
select :id, :account, event.number, :endpoint_number, :type, 'pending', :now, :now, :message
from event
where event.id = :event_id;
