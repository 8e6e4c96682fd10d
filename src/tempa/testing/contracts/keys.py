"""Contract of `KeyStore`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.core.accounts import ApiKey, digest, hint, new_secret_key
from tempa.core.ids import new_id
from tempa.testing.contracts.samples import ACCOUNT, OTHER_ACCOUNT

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench


class KeyContract:
    """Kept by digest, revoked for good, seen by their account only."""

    async def test_a_key_is_found_by_its_digest(self, bench: StoreBench) -> None:
        key = _a_key(bench)
        await bench.store.add_key(key)

        assert await bench.store.key_by_digest(key.digest) == key
        assert await bench.store.key_by_digest(digest("another")) is None

    async def test_an_account_sees_its_own_keys_oldest_first(self, bench: StoreBench) -> None:
        first = _a_key(bench)
        bench.clock.advance(1.0)
        second = _a_key(bench)
        for key in (second, first, _a_key(bench, OTHER_ACCOUNT)):
            await bench.store.add_key(key)

        assert await bench.store.keys(ACCOUNT) == [first, second]
        assert await bench.store.keys("nobody") == []

    async def test_revoking_is_for_good_and_keeps_its_time(self, bench: StoreBench) -> None:
        key = _a_key(bench)
        await bench.store.add_key(key)
        bench.clock.advance(5.0)
        revoked_at = bench.clock.now()

        assert await bench.store.revoke_key(ACCOUNT, key.id)
        bench.clock.advance(5.0)
        assert await bench.store.revoke_key(ACCOUNT, key.id)

        assert await bench.store.key_by_digest(key.digest) == replace(key, revoked_at=revoked_at)

    async def test_nobody_revokes_what_is_not_his(self, bench: StoreBench) -> None:
        key = _a_key(bench)
        await bench.store.add_key(key)

        assert not await bench.store.revoke_key(OTHER_ACCOUNT, key.id)
        assert not await bench.store.revoke_key(ACCOUNT, "key_00000000000000000000000000")
        assert await bench.store.key_by_digest(key.digest) == key

    async def test_the_last_use_never_goes_back(self, bench: StoreBench) -> None:
        first, second = _a_key(bench), _a_key(bench)
        for key in (first, second):
            await bench.store.add_key(key)
        now = bench.clock.now()
        later = now + timedelta(minutes=1)

        await bench.store.touch_keys({first.id: later, second.id: now, "key_unknown": now})
        await bench.store.touch_keys({first.id: now})
        await bench.store.touch_keys({})

        assert [key.last_used_at for key in await bench.store.keys(ACCOUNT)] == [later, now]


def _a_key(bench: StoreBench, account: str = ACCOUNT) -> ApiKey:
    secret = new_secret_key()
    return ApiKey(
        id=new_id("key"),
        account=account,
        name="CI „nächtlich“",
        hint=hint(secret),
        digest=digest(secret),
        scopes=("jobs:write", "jobs:read"),
        created_at=bench.clock.now(),
    )
