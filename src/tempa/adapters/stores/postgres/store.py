"""The shared store: jobs, deliveries, payments and keys in one PostgreSQL database."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

from tempa.adapters.stores.commands import Commands
from tempa.adapters.stores.commands.attempts import settle_all
from tempa.adapters.stores.commands.batches import Batches
from tempa.adapters.stores.commands.flow import ASK
from tempa.adapters.stores.postgres.access import PostgresAccess
from tempa.adapters.stores.postgres.admission import admit_all, look_up, same_key
from tempa.adapters.stores.postgres.connections import open_pool
from tempa.adapters.stores.postgres.queues import EventMark, Queues, open_queues
from tempa.adapters.stores.sql import encode
from tempa.core.clock import to_ms
from tempa.core.errors import StoreUnavailable
from tempa.jobs.model import Admission

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tempa.adapters.stores.commands.attempts import Settlement
    from tempa.adapters.stores.postgres.admission import Answer
    from tempa.adapters.stores.postgres.connections import Address
    from tempa.core.clock import Clock
    from tempa.core.work import Wake
    from tempa.jobs.model import Ending, Lease, NewJob

_ADMISSION_TRIES = 5  # the second one succeeds, unless the statement and binds() disagree


class PostgresStore(PostgresAccess, Commands):
    """The five ports in one database, for any number of processes."""

    @classmethod
    async def open(cls, address: Address, *, wake: Wake, clock: Clock | None = None) -> Self:
        """For a database that `prepare` has made ready. `clock`: in tests, in place of the database's own."""
        return cls(await open_pool(address), wake.ring, clock, bounded=not address.pooled)

    def __init__(
        self, pool: Any, ring: Callable[..., None], clock: Clock | None, *, bounded: bool = True
    ) -> None:
        super().__init__(pool, ring, clock, bounded=bounded)
        monotonic = time.monotonic if clock is None else clock.monotonic
        self.ready = self._queues = Queues(monotonic, self._given_time)
        self._events = EventMark(monotonic)
        self._admissions = Batches(self._admit_all, same_key)
        self._settlements = Batches(self._settle_all, lambda settlement: settlement[0].job_id)

    async def close(self) -> None:
        """Finish what was asked for, then stop. Everything asked afterwards raises StoreUnavailable."""
        await self._admissions.finish()
        await self._settlements.finish()
        await self._outcomes.finish()
        await self._calls.finish()
        await self._postings.finish()
        await self._pool.close()

    async def admit(self, new: NewJob) -> Admission:
        """Admit, replay or refuse `new`. Raises AccountFull."""
        for _ in range(_ADMISSION_TRIES):
            answer = await self._admissions.do(new)
            if isinstance(answer, Admission):
                return answer
            standing = await self._read(look_up, new)
            if standing is not None:  # else its key lapsed between the two, and is free now
                return standing
            if answer is not None:
                raise answer
        raise StoreUnavailable("The key was neither free nor taken, time and again.")

    async def settle(self, lease: Lease, ending: Ending) -> bool:
        """End the attempt. False: the lease was lost, and nothing was written."""
        return await self._settlements.do((lease, ending, False))

    async def next_delayed(self, lanes: Sequence[str]) -> float | None:
        """Seconds until the first job that waits for its retry; None: none does."""
        wait_ms = await self._ask(ASK.wait_for_delayed(lanes=encode(lanes), now=self._given_time()))
        return None if wait_ms is None else wait_ms / 1000

    def _placed_up_to(self) -> int:
        return self._events.number()

    def _note_placed(self, number: int) -> None:
        self._events.reached(number)

    async def _settle_all(self, batch: Sequence[Settlement]) -> Sequence[bool]:
        return await self._write(settle_all, batch, self._requests)

    async def _admit_all(self, batch: Sequence[NewJob]) -> Sequence[Answer]:
        if unknown := self._queues.unknown(batch):
            await self._write(open_queues, unknown)
            self._queues.opened(unknown)
        return await self._write(admit_all, batch, self._given_time())

    def _given_time(self) -> int | None:
        """In tests, the time; else the server has its own."""
        return None if self._clock is None else to_ms(self._clock.now())
