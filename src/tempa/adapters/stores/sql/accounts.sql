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

