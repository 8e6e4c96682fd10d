"""Many callers, one transaction: who travels together, and who suffers from whom."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.commands.batches import BATCH_MAX, Batches
from tempa.core.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE_SECONDS = 20.0


class Server:
    """Writes strings once its gate is open. "bad" is refused, whoever travels with it."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.written: list[str] = []
        self.down = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()
        self.lines = Batches(self.write, key=lambda item: item)

    async def write(self, items: Sequence[str]) -> list[str]:
        self.batches.append(list(items))
        self.asked.set()
        await self.gate.wait()
        if self.down:
            raise StoreUnavailable("down")
        if "bad" in items:
            raise ValueError("bad")
        self.written += items
        return [f"wrote {item}" for item in items]

    async def hold_first(self) -> asyncio.Task[str]:
        """One item under way: whatever comes now waits for the next batch."""
        self.gate.clear()
        first = asyncio.create_task(self.lines.do("first"))
        await asyncio.wait_for(self.asked.wait(), PATIENCE_SECONDS)
        return first


async def ask(server: Server, *items: str) -> list[asyncio.Task[str]]:
    """Callers that have all asked by now."""
    tasks = [asyncio.create_task(server.lines.do(item)) for item in items]
    await asyncio.wait(tasks, timeout=0)
    return tasks


async def outcomes(tasks: list[asyncio.Task[str]]) -> list[object]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return list(await asyncio.gather(*tasks, return_exceptions=True))


@pytest.fixture
async def server() -> Server:
    return Server()


async def test_what_comes_together_goes_together(server: Server) -> None:
    assert await outcomes(await ask(server, "a", "b", "c")) == ["wrote a", "wrote b", "wrote c"]
    assert server.batches == [["a", "b", "c"]]


async def test_what_comes_meanwhile_goes_next_in_the_order_it_came(server: Server) -> None:
    first = await server.hold_first()
    later = [*await ask(server, "a", "b"), *await ask(server, "c")]
    server.gate.set()

    assert await outcomes([first, *later]) == ["wrote first", "wrote a", "wrote b", "wrote c"]
    assert server.batches == [["first"], ["a", "b", "c"]]


async def test_equal_keys_never_share_a_batch_and_keep_their_order(server: Server) -> None:
    first = await server.hold_first()
    tasks = await ask(server, "a", "b", "a", "c", "a", "b")
    server.gate.set()
    await outcomes([first, *tasks])

    assert server.batches == [["first"], ["a", "b", "c"], ["a", "b"], ["a"]]


async def test_a_batch_has_a_bound(server: Server) -> None:
    tasks = await ask(server, *(f"{number:04}" for number in range(2 * BATCH_MAX + 1)))
    answers = await outcomes(tasks)

    assert [len(batch) for batch in server.batches] == [BATCH_MAX, BATCH_MAX, 1]
    assert answers == [f"wrote {number:04}" for number in range(2 * BATCH_MAX + 1)]


async def test_who_is_faulty_fails_alone(server: Server) -> None:
    answers = await outcomes(await ask(server, "a", "bad", "b"))

    assert [str(answer) for answer in answers] == ["wrote a", "bad", "wrote b"]
    assert isinstance(answers[1], ValueError)
    assert server.written == ["a", "b"]


async def test_who_is_faulty_and_alone_is_tried_once(server: Server) -> None:
    await outcomes(await ask(server, "bad"))

    assert server.batches == [["bad"]]


async def test_who_is_cancelled_has_written_all_the_same(server: Server) -> None:
    first = await server.hold_first()
    leaving, staying = await ask(server, "leaving", "staying")
    leaving.cancel()
    await asyncio.wait([leaving], timeout=PATIENCE_SECONDS)
    first.cancel()
    await asyncio.wait([first], timeout=PATIENCE_SECONDS)
    server.gate.set()

    assert await outcomes([staying]) == ["wrote staying"]
    assert first.cancelled()
    assert leaving.cancelled()
    assert server.written == ["first", "leaving", "staying"]


async def test_a_store_that_is_away_fails_all_of_a_batch_once_and_the_next_goes_through(
    server: Server,
) -> None:
    server.down = True
    answers = await outcomes(await ask(server, "a", "b"))
    server.down = False

    assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
    assert server.batches == [["a", "b"]]  # not tried again one by one: an outage is no item's doing
    assert await outcomes(await ask(server, "a", "b")) == ["wrote a", "wrote b"]


async def test_who_waits_behind_a_batch_that_fails_is_not_forgotten(server: Server) -> None:
    server.down = True
    first = await server.hold_first()
    waiting = await ask(server, "a")
    server.gate.set()

    assert [type(answer) for answer in await outcomes([first, *waiting])] == [StoreUnavailable] * 2
    assert server.batches == [["first"], ["a"]]
