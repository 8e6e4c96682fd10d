"""Who may take how much of a deliverer's room, so that receivers that hang hold up nobody else.

A slot is an exchange on its way. A receiver that hangs keeps one until the deadline, and a thousand
URLs that hang would keep all of them. So nobody may take the last: an attempt gets a slot only while

    weight * (slots its account holds + slots its host holds) < slots that are free

What an account can take is thus at most half of what is free, what a host of its can take at most a
third; whoever holds nothing yet is let in while anything is free (this is the "dynamic threshold" of
Choudhury and Hahne, IEEE/ACM Transactions on Networking 6:2, 1998, for buffers that queues share). The
weight keeps more of it back from those who are likely to hang: 1 for an endpoint that was quick, 2 for
a new one, 4 for a slow one. Alone on 1,024 slots, an account holds up to 512 with quick endpoints,
342 with new, 205 with slow ones; at one host, up to 342, 205 and 114. Hence endpoints that hang, whether at
their first attempt or known for it, delay

- no other account's deliveries,
- no quick endpoint's of their own account, not even at their own host,
- no new endpoint's at another host, unless some 340 hosts of the account hang at their first attempt.

A new endpoint at the very host that hangs waits for the first of those to time out: then all that wait
untried at that host count as slow, and who comes later is new again. And endpoints that were quick
until they hang all at once count as quick for the length of one attempt. Slow is who held its slot for
long, whatever came of it: a refusal at once costs nobody anything.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOW_SECONDS = 2.0  # a receiver that queues what it gets answers in a tenth of this


class Standing(IntEnum):
    """What to expect of an endpoint's next attempt. Stored: never renumber.

    The latest attempt decides; before the first, a slow one at the same host does.
    """

    QUICK = 0
    NEW = 1
    SLOW = 2

    @property
    def weight(self) -> int:
        """How many times over what is held counts: 1, 2, 4."""
        return 1 << self


def standing_after(duration_ms: int) -> Standing:
    """The standing of an endpoint whose latest attempt took so long."""
    return Standing.SLOW if duration_ms > SLOW_SECONDS * 1000 else Standing.QUICK


def host_of(url: str) -> str:
    """A URL's host with its port, as in HTTP's `Host`; empty if it has none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:  # an unclosed bracket; its attempt will say so
        return ""


class Room:
    """The slots of one deliverer, and who holds them."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._accounts: Counter[str] = Counter()
        self._hosts: Counter[tuple[str, str]] = Counter()

    @property
    def free(self) -> int:
        """Slots that nobody holds."""
        return self._slots - self._accounts.total()

    def admits(self, account: str, host: str, standing: Standing) -> bool:
        """Whether an attempt there may take a slot now."""
        held = self._accounts[account] + self._hosts[account, host]
        return standing.weight * held < self.free

    def enter(self, account: str, host: str) -> None:
        """A slot is taken."""
        self._accounts[account] += 1
        self._hosts[account, host] += 1

    def leave(self, account: str, host: str) -> None:
        """A slot is given back."""
        self._accounts[account] -= 1
        self._hosts[account, host] -= 1
        if not self._hosts[account, host]:  # one host a customer: they would pile up
            del self._hosts[account, host]
        if not self._accounts[account]:
            del self._accounts[account]

    def full_accounts(self) -> Iterator[tuple[Standing, str]]:
        """Where an account may take nothing more, whatever the host."""
        for account, held in self._accounts.items():
            yield from ((standing, account) for standing in Standing if standing.weight * held >= self.free)

    def full_hosts(self) -> Iterator[tuple[Standing, str, str]]:
        """Where a host of an account may take nothing more: (standing, account, host)."""
        for account, host in self._hosts:
            full = (standing for standing in Standing if not self.admits(account, host, standing))
            yield from ((standing, account, host) for standing in full)

    def copy(self) -> Room:
        """One to try things out in."""
        room = Room(self._slots)
        room._accounts, room._hosts = self._accounts.copy(), self._hosts.copy()
        return room
