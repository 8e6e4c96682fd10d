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


@dataclass(frozen=True, slots=True)
class Waiting:
    """An account with jobs that wait. `room`: how many more of its jobs may run; None: any number."""

    account: str
    weight: float = 1.0
    room: int | None = None


class Shares:
    """How far each account has been served."""

    def __init__(self) -> None:
        self._served: dict[str, float] = {}
        self._reached = 0.0  # where those stand whose turn it is

    def turns(self, waiting: Iterable[Waiting]) -> Turns:
        """The order in which these accounts take their turns from here."""
        return Turns({each.account: each for each in waiting}, self._served, self._reached)

    def charge(self, waiting: Mapping[str, Waiting], starts: Iterable[str]) -> None:
        """Jobs of these accounts were started, in this order."""
        for account in starts:
            at = max(self._served.get(account, 0.0), self._reached)
            self._reached = at
            self._served[account] = at + 1.0 / waiting[account].weight
        if len(self._served) > FORGET_BEYOND:
            self._served = {name: at for name, at in self._served.items() if at > self._reached}


class Turns:
    """One round: `next` names whose turn it is, `took` that the turn was used, `drop` that it cannot be."""

    def __init__(self, waiting: Mapping[str, Waiting], served: Mapping[str, float], reached: float) -> None:
        self._waiting = waiting
        self._room = {name: each.room for name, each in waiting.items()}
        self._line = [
            (max(served.get(name, 0.0), reached), served.get(name, 0.0), name)
            for name in waiting
            if self._has_room(name)
        ]
        heapq.heapify(self._line)

    def next(self) -> str | None:
        """The account whose turn it is; None: nobody is left."""
        return self._line[0][2] if self._line else None

    def took(self) -> None:
        """It used its turn: it stands behind those that have had fewer, for its weight."""
        at, served, name = heapq.heappop(self._line)
        room = self._room[name]
        self._room[name] = None if room is None else room - 1
        if self._has_room(name):
            heapq.heappush(self._line, (at + 1.0 / self._waiting[name].weight, served, name))

    def drop(self) -> None:
        """It has nothing more that may start."""
        heapq.heappop(self._line)

    def _has_room(self, name: str) -> bool:
        room = self._room[name]
        return room is None or room > 0
