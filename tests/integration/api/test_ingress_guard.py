"""The guard in front of the inbox saves work and decides nothing: down, slow, killed, stale or lying.

Against a real server of Redis' protocol.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.payments.guard import REST_SECONDS, TIMEOUT_SECONDS, RedisGuard
from tempa.core.errors import StoreUnavailable
from tempa.settlement.inbox import Incoming
from tempa.testing.clock import ManualClock
from tempa.testing.valkey import NoValkey, ValkeyServer, running_valkey
from tests.integration.api.hearing import Ingress, a_signature, problem, quicknode_headers, taken, telling

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.integration.api.conftest import Served

EACH = ["down", "killed", "frozen"]


@dataclass
class Watched:
    """The server's store, and what it was given to take in."""

    store: Any
    came: list[Incoming] = field(default_factory=list)
    is_away: bool = False

    async def take_in(self, incoming: Incoming) -> Any:
        self.came.append(incoming)
        if self.is_away:
            raise StoreUnavailable
        return await self.store.take_in(incoming)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


@pytest.fixture
def valkey() -> Iterator[ValkeyServer]:
    try:
        with running_valkey() as server:
            yield server
    except NoValkey as missing:
        pytest.skip(str(missing))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def guard(valkey: ValkeyServer, clock: ManualClock) -> AsyncIterator[RedisGuard]:
    made = RedisGuard(valkey.url, namespace="here", clock=clock)
    yield made
    await made.close()


@pytest.fixture
def store(served: Served) -> Watched:
    return Watched(served.store)


@pytest.fixture
def guarded(served: Served, store: Watched, guard: RedisGuard) -> Ingress:
    return Ingress.of(served, store, guard)


async def test_what_is_on_disk_is_not_written_again(guarded: Ingress, store: Watched) -> None:
    one, two = a_signature(), a_signature()

    answers = [await guarded.tell("helius", *told) for told in [(one,), (one,), (one, two), (two, one)]]

    assert [taken(answer) for answer in answers] == [(1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 2, 0)]
    assert [incoming.signatures for incoming in store.came] == [(one,), (two,)]


async def test_each_source_is_remembered_by_itself(guarded: Ingress) -> None:
    """A second source that tells of the same is evidence, and stands in the inbox."""
    signature = a_signature()

    assert taken(await guarded.tell("helius", signature)) == (1, 0, 0)
    assert taken(await guarded.tell("quicknode", signature)) == (1, 0, 0)
    assert len(await guarded.inbox(signature)) == 2


async def test_what_did_not_come_to_disk_is_taken_at_the_next_try(guarded: Ingress, store: Watched) -> None:
    """SET NX before the insert would have lost it."""
    signature = a_signature()
    store.is_away = True
    assert problem(await guarded.tell("helius", signature)) == (503, "store-unavailable")
    store.is_away = False

    assert taken(await guarded.tell("helius", signature)) == (1, 0, 0)
    assert len(await guarded.inbox(signature)) == 1


async def test_a_replay_is_noticed_all_the_same(guarded: Ingress) -> None:
    body = telling("quicknode", a_signature())
    headers = quicknode_headers(body)

    answers = [await guarded.post("quicknode", body, **headers) for _ in range(2)]

    assert [taken(answer) for answer in answers] == [(1, 0, 0), (0, 1, 0)]
    assert guarded.counted["quicknode", "replayed"] == 1


async def test_what_comes_with_a_nonce_that_was_used_for_something_else_is_stored(guarded: Ingress) -> None:
    first, second = telling("quicknode", a_signature()), telling("quicknode", signature := a_signature())
    await guarded.post("quicknode", first, **quicknode_headers(first, nonce="n"))

    answer = await guarded.post("quicknode", second, **quicknode_headers(second, nonce="n"))

    assert taken(answer) == (1, 0, 0)
    assert len(await guarded.inbox(signature)) == 1
    assert [each.reason for each in await guarded.anomalies()] == ["call_replayed"]
    assert taken(await guarded.tell("quicknode", signature)) == (0, 1, 0)


async def test_entries_without_a_signature_are_kept_beside_known_ones(guarded: Ingress) -> None:
    signature = a_signature()
    await guarded.tell("helius", signature)

    answer = await guarded.post("helius", b'[{}, {"signature": "%s"}]' % signature.encode())

    assert taken(answer) == (0, 1, 1)
    assert [each.reason for each in await guarded.anomalies()] == ["entry_unreadable"]


def break_down(valkey: ValkeyServer, how: str) -> None:
    valkey.freeze() if how == "frozen" else valkey.kill()


@pytest.mark.parametrize("how", EACH)
async def test_one_that_is_out_of_order_changes_nothing_but_speed(
    guarded: Ingress, valkey: ValkeyServer, how: str
) -> None:
    """Down from the start, killed midway, or connected and silent."""
    signatures = [a_signature() for _ in range(20)]
    if how != "down":
        assert taken(await guarded.tell("helius", signatures[0])) == (1, 0, 0)
    known = [] if how == "down" else signatures[:1]
    break_down(valkey, how)

    begin = time.monotonic()
    answers = [await guarded.tell("helius", one) for one in signatures]
    elapsed_seconds = time.monotonic() - begin

    assert [taken(answer) for answer in answers] == [
        (0, 1, 0) if one in known else (1, 0, 0) for one in signatures
    ]
    assert elapsed_seconds < 20 * TIMEOUT_SECONDS  # it is asked once, and then left alone
    assert [len(await guarded.inbox(one)) for one in signatures] == [1] * 20


async def test_it_is_used_again_when_it_is_back(
    guarded: Ingress, store: Watched, valkey: ValkeyServer, clock: ManualClock
) -> None:
    valkey.kill()
    await guarded.tell("helius", a_signature())
    valkey.start()
    clock.advance(REST_SECONDS)
    signature = a_signature()
    await guarded.tell("helius", signature)
    written = len(store.came)

    assert taken(await guarded.tell("helius", signature)) == (0, 1, 0)
    assert len(store.came) == written


async def test_one_that_lies_hides_nothing_from_the_sweep(guarded: Ingress, guard: RedisGuard) -> None:
    """As after a database was set back: the mark says more than is on disk."""
    signature = a_signature()
    await guard.remember("helius", [signature])

    assert taken(await guarded.tell("helius", signature)) == (0, 1, 0)
    assert await guarded.inbox(signature) == []
    assert taken(await guarded.tell("generic", signature)) == (1, 0, 0)
    swept = await guarded.served.store.take_in(Incoming(source="sweep", raw=b"", signatures=(signature,)))
    assert swept.accepted == 1


async def test_of_64_posts_at_once_one_is_accepted_however_the_guard_fares(
    guarded: Ingress, valkey: ValkeyServer
) -> None:
    signature = a_signature()
    posts = [asyncio.create_task(guarded.tell("helius", signature)) for _ in range(64)]
    await asyncio.sleep(0)
    valkey.kill()

    came = [taken(await post) for post in posts]

    assert [sum(column) for column in zip(*came, strict=True)] == [1, 63, 0]


async def test_marks_are_of_one_installation_and_pass(
    valkey: ValkeyServer, guard: RedisGuard, clock: ManualClock
) -> None:
    from redis.asyncio import Redis

    await guard.remember("helius", ["one", "two"])
    neighbour = RedisGuard(valkey.url, namespace="there", clock=clock)

    assert await guard.known("helius", ["zero", "one", "two"]) == {"one", "two"}
    assert await guard.known("quicknode", ["one"]) == frozenset()
    assert await neighbour.known("helius", ["one"]) == frozenset()
    async with Redis.from_url(valkey.url) as server:
        (key, _) = sorted(await server.keys("*"))
        assert key == b"tempa:here:payments:helius:one"
        assert 0 < await server.ttl(key) <= 3600
    await neighbour.close()
