"""Whose turn it is: accounts share the workers by weight, however much one of them has queued.

Stride scheduling (Waldspurger and Weihl, 1995): every start moves an account on by 1/weight, and the one
that is least far goes next. One that comes back after a rest starts where the others are: a rest earns
nothing. Kept in memory: a process that starts anew treats all alike, and each being fair, all are.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORGET_BEYOND = 10_000  # accounts: those furthest behind are where everybody would start anyway

Standing = tuple[float, int]
"""How far an account has been served, and which of all starts was its last: among equals who started
longest ago goes first, else one of two equals could go twice in a row."""

NEW: Standing = (0.0, 0)


@dataclass(frozen=True, slots=True)
class Waiting:
    """An account with jobs that wait. `room`: how many more of its jobs may run; None: any number."""

    account: str
    weight: float = 1.0
    room: int | None = None


class Shares:
    """How far each account has been served."""

    def __init__(self) -> None:
        self._served: dict[str, Standing] = {}
        self._reached = 0.0  # where those stand whose turn it is
        self._starts = 0

    def turns(self, waiting: Iterable[Waiting]) -> Turns:
        """The order in which these accounts take their turns from here."""
        return Turns({each.account: each for each in waiting}, self._served, self._reached, self._starts)

    def charge(self, waiting: Mapping[str, Waiting], starts: Iterable[str]) -> None:
        """Jobs of these accounts were started, in this order."""
        for account in starts:
            self._reached = max(self._served.get(account, NEW)[0], self._reached)
            self._starts += 1
            self._served[account] = (self._reached + 1.0 / waiting[account].weight, self._starts)
        if len(self._served) > FORGET_BEYOND:
            ahead = {name: at for name, at in self._served.items() if at[0] > self._reached}
            self._served = ahead


class Turns:
    """One round: `next` names whose turn it is, `took` that the turn was used, `drop` that it cannot be."""

    def __init__(
        self, waiting: Mapping[str, Waiting], served: Mapping[str, Standing], reached: float, starts: int
    ) -> None:
        self._waiting, self._starts = waiting, starts
        self._room = {name: each.room for name, each in waiting.items()}
        standings = {name: served.get(name, NEW) for name in waiting if self._has_room(name)}
        self._line = [(max(at, reached), last, name) for name, (at, last) in standings.items()]
        heapq.heapify(self._line)

    def next(self) -> str | None:
        """The account whose turn it is; None: nobody is left."""
        return self._line[0][2] if self._line else None

    def took(self) -> None:
        """It used its turn: it stands behind those that have had fewer, for its weight."""
        at, _, name = heapq.heappop(self._line)
        self._starts += 1
        room = self._room[name]
        self._room[name] = None if room is None else room - 1
        if self._has_room(name):
            heapq.heappush(self._line, (at + 1.0 / self._waiting[name].weight, self._starts, name))

    def drop(self) -> None:
        """It has nothing more that may start."""
        heapq.heappop(self._line)

    def _has_room(self, name: str) -> bool:
        room = self._room[name]
        return room is None or room > 0
