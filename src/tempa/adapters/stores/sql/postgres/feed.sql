-- The feed's order. An account's own end of it is in endpoints.sql.

-- name: last_position()$
-- Of all accounts. Unlike the newest event's it stays when old events are pruned: no position beyond it was
-- ever given. A fan-out that is under way is counted already.
select case when is_called then last_value else 0 end from feed_position;
