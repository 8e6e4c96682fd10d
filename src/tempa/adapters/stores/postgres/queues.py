"""Jobs that wait, looked for from where the last look ended.

A finished job's entry stays in the ready index until vacuum may take it out, and while any snapshot
anywhere in the database is older than its end it may not: one idle transaction made claims that start
from the front eight times slower within 12,000 jobs (measured). So each queue (the jobs of one account,
lane and priority) has a mark: every entry before it was seen and is gone, or has to wait. A mark moves on a
moment after what it marks was taken, for what is committed late. What lies before it all the same (a very
late commit, equal work whose turn has come) is found by a look from the front, once a second.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.claims import Line
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Done, Timed
from tempa.adapters.stores.commands.shares import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tempa.adapters.stores.commands.flow import Ask, Flow, Moment
    from tempa.jobs.model import NewJob

FROM_THE_FRONT_SECONDS = 1.0
LATE_SECONDS = 0.2  # from a write to its commit; what takes longer is found from the front

_FRONT = (0, 0)


@dataclass(frozen=True, slots=True, order=True)
class Queue:
    """The jobs of one account, lane and priority. They are taken in the order of (run_at, number)."""

    lane: str
    account: str
    priority: int

    def row(self) -> dict[str, Any]:
        """Its columns."""
        return {"lane": self.lane, "account": self.account, "priority": self.priority}


def queue_of(new: NewJob) -> Queue:
    """Where an admitted job waits."""
    return Queue(new.request.lane, new.account, new.request.priority)


class EventMark:
    """Up to where events have their positions: for fan-out's looks, as a queue's mark for a claim's.

    What was placed a moment ago is looked at again: a transaction that began before may end after.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._recent: deque[tuple[float, int]] = deque()  # when, and up to where
        self._number = 0
        self._front_at = float("-inf")

    def number(self) -> int:
        """Where the next look begins; 0 once a second."""
        now = self._monotonic()
        if now - self._front_at >= FROM_THE_FRONT_SECONDS:
            self._front_at = now
            return 0
        while self._recent and now - self._recent[0][0] >= LATE_SECONDS:
            self._number = max(self._number, self._recent.popleft()[1])
        return self._number

    def reached(self, number: int) -> None:
        """Events up to this one were placed."""
        self._recent.append((self._monotonic(), number))


class Queues:
    """`ReadyJobs`. `monotonic` times the looks from the front; `given_time`, in tests, is what is due."""

    def __init__(
        self, monotonic: Callable[[], float], given_time: Callable[[], int | None] = lambda: None
    ) -> None:
        self._monotonic, self._given_time = monotonic, given_time
        self._marks: dict[Queue, tuple[int, int]] = {}
        self._recent: deque[tuple[float, Queue, tuple[int, int]]] = deque()  # when it was taken, and where
        self._front_at = float("-inf")
        self._from_the_front = True
        self._latest = 0  # of the moments of claims

    def unknown(self, batch: Iterable[NewJob]) -> list[Queue]:
        """Queues that this process has not met yet: they must stand in the database before their jobs do."""
        return sorted({queue_of(new) for new in batch} - self._marks.keys())

    def opened(self, queues: Iterable[Queue]) -> None:
        """These stand in the database."""
        for queue in queues:
            self._marks.setdefault(queue, _FRONT)

    def line(self, lanes: Sequence[str], limit: int) -> Flow[Line]:
        """The accounts with queued jobs. Asked again if others have opened queues meanwhile.

        Where only one account has queues its jobs come along: one way to the server, not two.
        """
        self._move_on()
        if not self._accounts(lanes):
            yield from self._meet()
        while accounts := self._accounts(lanes):
            if len(accounts) == 1:
                queues, line = yield from self._alone(lanes, accounts.pop(), limit)
            else:
                queues, line = yield from self._all(lanes)
            if self._went_back(line.moment):
                continue
            if queues <= len(self._marks):
                return line
            yield from self._meet()
        moment = yield MOMENT
        return Line([], moment)

    def _went_back(self, moment: Moment) -> bool:
        """Whether the clock was set back: jobs admitted since lie before the marks, which are forgotten."""
        back, self._latest = moment.now < self._latest, moment.now
        if back:
            self._recent.clear()
            self._marks = dict.fromkeys(self._marks, _FRONT)
        return back

    def _all(self, lanes: Sequence[str]) -> Flow[tuple[int, Line]]:
        rows, moment = yield Timed(ASK.waiting_accounts(self._rows(lanes)))
        waiting = [_waiting(row["account"], row) for row in rows if row["account"] is not None]
        return rows[0]["queues"], Line(waiting, moment)

    def _alone(self, lanes: Sequence[str], account: str, limit: int) -> Flow[tuple[int, Line]]:
        rows, moment = yield Timed(self._due(lanes, account, self._given_time(), limit))
        due = _found(rows, limit)
        waiting = [_waiting(account, rows[0])] if due else []
        return rows[0]["queues"], Line(waiting, moment, {account: due})

    def _accounts(self, lanes: Sequence[str]) -> set[str]:
        return {queue.account for queue in self._marks if queue.lane in lanes}

    def _move_on(self) -> None:
        now = self._monotonic()
        while self._recent and now - self._recent[0][0] >= LATE_SECONDS:
            _, queue, place = self._recent.popleft()
            self._marks[queue] = max(self._marks[queue], place)
        self._from_the_front = now - self._front_at >= FROM_THE_FRONT_SECONDS
        if self._from_the_front:
            self._front_at = now

    def due(self, lanes: Sequence[str], account: str, moment: Moment, limit: int) -> Flow[list[Any]]:
        """Rows of an account's jobs, the most urgent first."""
        rows = yield self._due(lanes, account, moment.now, limit)
        return _found(rows, limit)

    def _due(self, lanes: Sequence[str], account: str, now: int | None, limit: int) -> Ask:
        return ASK.due_jobs([{**row, "now": now, "limit": limit} for row in self._rows(lanes, account)])

    def took(self, rows: Sequence[Any]) -> None:
        """Later looks begin with the last of them: it may be handed back within the same millisecond."""
        now = self._monotonic()
        for row in rows:
            queue = Queue(row["lane"], row["account"], row["priority"])
            self._recent.append((now, queue, (row["run_at"], row["number"])))

    def _meet(self) -> Flow[None]:
        """Queues that other processes have opened."""
        rows = yield ASK.queues_beyond(known=len(self._marks))
        self.opened(Queue(row["lane"], row["account"], row["priority"]) for row in rows)

    def _rows(self, lanes: Sequence[str], account: str | None = None) -> list[dict[str, Any]]:
        wanted = set(lanes)
        chosen = [
            (queue, _FRONT if self._from_the_front else mark)
            for queue, mark in self._marks.items()
            if queue.lane in wanted and account in (None, queue.account)
        ]
        return [{**queue.row(), "run_at": run_at, "number": number} for queue, (run_at, number) in chosen]


def _waiting(account: str, row: Any) -> Waiting:
    return Waiting(account, row["weight"], row["room"])


def _found(rows: Sequence[Any], limit: int) -> list[Any]:
    """Without the one row that says that there is none."""
    return [row for row in rows if row["id"] is not None][:limit]


def open_queues(queues: Sequence[Queue]) -> Flow[Done[None]]:
    """Make them known to all processes."""
    yield ASK.open_queues([queue.row() for queue in queues])
    return Done(None)
