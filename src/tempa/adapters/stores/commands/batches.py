"""Many callers, one transaction: what comes while one is under way goes with the next (group commit).

A transaction costs a flush and a few ways to the server whatever is in it, so 64 callers get many times
the throughput of one by one, each with its own guarantee: the answer comes after the commit.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from tempa.core.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Sequence

Item = TypeVar("Item")
Answer = TypeVar("Answer")

BATCH_MAX = 256  # bounds what one bad item takes with it, and the size of a statement


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[Item, Answer]):
    item: Item
    key: Hashable
    future: asyncio.Future[Answer] = field(compare=False)


class Batches(Generic[Item, Answer]):
    """Calls `write` with all items that wait, one batch at a time; it answers each in its place.

    Items with an equal `key` never share a batch: the later one must see what the first has done. A
    caller that is cancelled does not undo what it asked for. If a batch fails, each of its items is
    tried alone, so that a faulty one fails nobody else.
    """

    def __init__(
        self,
        write: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]],
        key: Callable[[Item], Hashable],
    ) -> None:
        self._write, self._key = write, key
        self._line: list[_Waiting[Item, Answer]] = []
        self._task: asyncio.Task[None] | None = None

    async def do(self, item: Item) -> Answer:
        """The answer to `item`, once it is on disk."""
        waiting = _Waiting(item, self._key(item), asyncio.get_running_loop().create_future())
        self._line.append(waiting)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="store batches")
        answer: Answer = await waiting.future
        return answer

    async def finish(self) -> None:
        """Returns when nobody waits for an answer any more."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        await asyncio.sleep(0)  # whoever is about to ask in this same turn of the loop comes along
        try:
            while self._line:
                await self._write_batch(self._take())
        finally:
            self._task = None

    def _take(self) -> list[_Waiting[Item, Answer]]:
        batch: dict[Hashable, _Waiting[Item, Answer]] = {}
        rest = []
        for waiting in self._line:
            if len(batch) < BATCH_MAX and waiting.key not in batch:
                batch[waiting.key] = waiting
            else:
                rest.append(waiting)
        self._line = rest
        return list(batch.values())

    async def _write_batch(self, batch: list[_Waiting[Item, Answer]]) -> None:
        try:
            answers = await self._write([waiting.item for waiting in batch])
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to those who wait
            if len(batch) > 1 and _is_its_own(error):
                for waiting in batch:
                    await self._write_batch([waiting])
            else:
                _fail(batch, error)
        else:
            for waiting, answer in zip(batch, answers, strict=True):
                if not waiting.future.done():
                    waiting.future.set_result(answer)


def _is_its_own(error: Exception) -> bool:
    """Whether the error is an item's own, so that the others of its batch may go through."""
    return not isinstance(error, StoreUnavailable)


def _fail(batch: Sequence[_Waiting[Item, Answer]], error: Exception) -> None:
    for waiting in batch:
        if not waiting.future.done():
            waiting.future.set_exception(error)
