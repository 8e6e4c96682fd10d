"""What was asked for never changes: a process that still has a job in hand need not read it again."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from tempa.adapters.stores.commands.flow import Access
from tempa.adapters.stores.sql import request_from

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tempa.jobs.model import Job, Request


class Requests:
    """Requests of the jobs that this process has claimed, as long as anybody here holds them.

    A settlement needs a few words of one; to read and decode it again took a fifth of the time of an empty
    job, and a request may be a megabyte.
    """

    def __init__(self) -> None:
        self._held: WeakValueDictionary[str, Request] = WeakValueDictionary()

    def keep(self, jobs: Iterable[Job]) -> None:
        """These were claimed."""
        self._held.update((job.id, job.request) for job in jobs)

    def unread(self, job_ids: Iterable[str]) -> list[str]:
        """Those of which the request must be read."""
        return [job_id for job_id in job_ids if job_id not in self._held]

    def of(self, row: Any) -> Request:
        """That of a row of `jobs_for_update`."""
        held = self._held.get(row["id"])
        return request_from(row["request"]) if held is None else held


class RequestsPart(Access):
    """Base of those who claim and those who settle."""

    def __init__(self) -> None:
        super().__init__()
        self._requests = Requests()
