-- Accounts and their API keys. A key's secret is never here, only its SHA-256.

-- name: ensure_account(account, now)!
-- An account exists from its first key on.
insert into account (id, created_at) values (:account, :now) on conflict (id) do nothing;

-- name: insert_key(id, account, name, hint, digest, scopes, created_at, revoked_at, last_used_at)!
-- unique (digest): one secret is one key, though several processes bring their first one at once.
insert into api_key (id, account, name, hint, digest, scopes, created_at, revoked_at, last_used_at)
values (:id, :account, :name, :hint, :digest, :scopes, :created_at, :revoked_at, :last_used_at)
on conflict (digest) do nothing;

-- name: key_by_digest(digest)^
-- Revoked ones too: the door tells a revoked key from one it never knew.
select * from api_key where digest = :digest;

-- name: keys_of_account(account)
-- Revoked ones too: people look for what they revoked.
select * from api_key where account = :account order by created_at, id;

-- name: revoke_key(account, key_id, now)!
-- The first revocation's time stays.
update api_key set revoked_at = coalesce(revoked_at, :now) where id = :key_id and account = :account;


-- name: account(account)^
-- What it may ask for; null in a column: the default of the settings.
select * from account where id = :account;

-- name: accounts(day)
-- All, with the kernel milliseconds that each has used on a day. A few hundred, asked for by a person.
select
    account.*,
    cast(coalesce((
        select sum(used.compute_ms) from account_day as used where used.day = :day and used.account = account.id
    ), 0) as bigint) as compute_ms
from account
order by account.id;

-- name: write_account(account, weight, running_max, queued_max, requests_per_second, compute_seconds_per_day)!
-- Behind a lock on the row, so that of two who change different limits neither undoes the other.
update account
set weight = :weight,
    running_max = :running_max,
    queued_max = :queued_max,
    requests_per_second = :requests_per_second,
    compute_seconds_per_day = :compute_seconds_per_day
where id = :account;

-- name: compute_of_day(account, day)$
-- One row a settlement, or a batch of them: 50,000 are read from the index in a few milliseconds.
select cast(coalesce(sum(compute_ms), 0) as bigint) from account_day where day = :day and account = :account;

-- name: forget_days(before, limit)!
-- Nobody asks for what was used before yesterday; each attempt keeps what it took.
delete from account_day
where number in (select past.number from account_day as past where past.day < :before limit :limit);
