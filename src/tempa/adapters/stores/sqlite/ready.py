"""Jobs that wait, straight from the ready index: finished ones leave it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.claims import Line
from tempa.adapters.stores.commands.flow import ASK, Timed
from tempa.adapters.stores.commands.shares import Waiting
from tempa.adapters.stores.sql import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.adapters.stores.commands.flow import Flow, Moment


class ReadyIndex:
    """`ReadyJobs`."""

    def line(self, lanes: Sequence[str], limit: int) -> Flow[Line]:  # noqa: ARG002 - nothing comes along
        """The accounts with queued jobs."""
        rows, moment = yield Timed(ASK.waiting_accounts(lanes=encode(lanes)))
        return Line([Waiting(row["account"], row["weight"], row["room"]) for row in rows], moment)

    def due(self, lanes: Sequence[str], account: str, moment: Moment, limit: int) -> Flow[list[Any]]:
        """Rows of an account's jobs, the most urgent first."""
        rows: list[Any] = yield ASK.due_jobs(
            lanes=encode(lanes), account=account, now=moment.now, limit=limit
        )
        return rows

    def took(self, rows: Sequence[Any]) -> None:
        """Nothing to remember."""
