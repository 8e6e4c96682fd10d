-- Due times after the wall clock was set back: they are Unix milliseconds, and would all come late by as much.
-- PostgreSQL goes by its own clock, and has none of these.
--
-- What was due before is due now, not in the past: so it keeps its place behind what is due for longer.

-- name: latest_record()$
-- The newest event, and the newest attempt: a receiver that is down for a day leaves no events. A probe each.
select max(
    coalesce((select event.at from event order by event.number desc limit 1), 0),
    coalesce((select last.started_at from delivery_attempt as last order by last.number desc limit 1), 0)
);

-- name: set_back_deliveries(now, by)!
-- Those in flight too: one whose lease runs out waits for the time that it was due at.
update delivery set next_at = max(:now, next_at - :by) where finished_at is null and next_at > :now;

-- name: set_back_inbox(now, by)!
-- Lookups of payments, those under way too.
update inbox set next_at = max(next_at - :by, :now) where state = 'pending' and next_at > :now;

-- name: set_back_endpoints(now, by)!
-- Both in the same way, so that line_at is what would be reckoned anew from the rest (rejoin_line).
update endpoint
set held_until = case when held_until > :now then max(:now, held_until - :by) else held_until end,
    line_at = case when line_at > :now then max(:now, line_at - :by) else line_at end,
    paced_at = case when paced_at > :now then max(:now, paced_at - :by) else paced_at end
where held_until > :now or line_at > :now or paced_at > :now;

-- name: set_back_jobs(now, by)
-- All that was admitted within the last :by too, as that was due at once. Running ones get a new time with
-- their next retry.
update job set run_at = max(:now, run_at - :by) where status = 'queued' and run_at > :now returning lane;
