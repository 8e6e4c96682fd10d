-- The feed's order. An account's own end of it is in endpoints.sql.

-- name: last_position()$
-- Of all accounts. Unlike the newest event's it stays when old events are pruned: no position beyond it was
-- ever given.
select position from feed;
