"""Direct dispatch: a job that is admitted while a slot is free is claimed in the same commit.

Pickup then costs one flush and not two, and no ring has to be heard. The claim is the usual one: if another
account's turn has come, or something more urgent waits, that is what the free slot gets.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from tempa.adapters.stores.commands.claims import ClaimsPart, claim
from tempa.adapters.stores.commands.flow import Done
from tempa.adapters.stores.sql import job_row
from tempa.adapters.stores.sqlite.admission import AdmissionPart, admit
from tempa.core.work import lane_topic
from tempa.jobs.model import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.adapters.stores.commands.claims import Look
    from tempa.adapters.stores.commands.flow import Flow
    from tempa.jobs.model import Admission, Claimed, NewJob
    from tempa.jobs.ports import StandBy


class DirectPart(AdmissionPart, ClaimsPart):
    """`JobStore.admit` and `stand_by`."""

    _standing_by: tuple[StandBy, ...] = ()

    @contextmanager
    def stand_by(self, worker: StandBy) -> Iterator[None]:
        """While inside, `worker` is handed jobs as they are admitted: those of its lanes."""
        self._standing_by = (*self._standing_by, worker)
        try:
            yield
        finally:
            self._standing_by = tuple(one for one in self._standing_by if one is not worker)

    async def admit(self, new: NewJob) -> Admission:
        """Admit, replay or refuse `new`; start what a free slot is for."""
        lane = new.request.lane
        worker = next((one for one in self._standing_by if one.reserve(lane)), None)
        if worker is None:
            return await super().admit(new)
        look = self._look(worker.lanes, limit=1)
        # A task of its own: a caller that is cancelled must not take along what is being claimed.
        writing = asyncio.ensure_future(
            self._write(_admit_and_claim, new, look, worker.worker_id, worker.lease_seconds)
        )
        writing.add_done_callback(partial(_hand_over, worker))
        admission, _ = await asyncio.shield(writing)
        return admission


def _hand_over(worker: StandBy, writing: asyncio.Future[tuple[Admission, list[Claimed]]]) -> None:
    failed = writing.cancelled() or writing.exception() is not None
    worker.take([] if failed else writing.result()[1])


def _admit_and_claim(
    new: NewJob, look: Look, worker: str, lease_seconds: float
) -> Flow[Done[tuple[Admission, list[Claimed]]]]:
    admitted = yield from admit(new, job_row(new))
    if admitted.answer.verdict is not Verdict.ADMITTED:
        return Done((admitted.answer, []), admitted.topics)
    started = yield from claim(look, worker, lease_seconds)
    topics = {*admitted.topics, *started.topics}
    if [one.job.id for one in started.answer] == [new.id]:
        topics.discard(lane_topic(new.request.lane))  # nobody else need look for it
    return Done((admitted.answer, started.answer), tuple(topics))
