"""The sweep: what nobody told of is found in the history of the treasury's own accounts.

Each account is read on one node after the other, each from where it was read there: a transaction is missed
only if every node hides it. A cursor stands for what is in the inbox, so a sweep that is killed reads again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from tempa.core.crash import crash_point
from tempa.core.errors import StoreUnavailable
from tempa.core.work import either, pause
from tempa.settlement.history import Reader, advanced, head
from tempa.settlement.inbox import Incoming
from tempa.settlement.model import SOL
from tempa.settlement.ports import Trouble
from tempa.settlement.quorum import common_slot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tempa.core.clock import Clock
    from tempa.core.metrics import Meter
    from tempa.settlement.history import Page
    from tempa.settlement.inbox import Cursor, Unread
    from tempa.settlement.model import TreasuryAccount
    from tempa.settlement.ports import Chain, SettlementStore, Sighting
    from tempa.settlement.quorum import Quorum
    from tempa.settlement.watch import TreasuryWatch

_logger = logging.getLogger(__name__)

SOURCE = "sweep"

_KNOWN_MAX = 65_536  # signatures that are not written again; more only cost a statement that changes nothing
_MISSED_MAX = 10_000


def cursor_key(node: str, address: str) -> str:
    """What a node's cursor for an account is kept by: another node may show what this one hides."""
    return f"{node} {address}"


@dataclass(kw_only=True)
class Sweeper:
    """Reads the treasury's accounts every `every_seconds`, or as soon as it is asked to.

    - `page_limit`: rows of a page.
    - `pages_max`: of one account, until the others and what came meanwhile have their turn.
    - `at_once`: accounts that are read at the same time.
    """

    store: SettlementStore
    quorum: Quorum
    watch: TreasuryWatch
    clock: Clock
    meter: Meter
    every_seconds: float = 10.0
    retry_seconds: float = 1.0
    page_limit: int = 1000
    pages_max: int = 50
    at_once: int = 8
    name: str = "sweeper"
    _soon: asyncio.Event = field(default_factory=asyncio.Event)
    _round: int = 0
    _known: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _blind: set[str] = field(default_factory=set)  # keys of cursors whose node has lost what it once showed
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    def sweep_soon(self) -> None:
        """Sweep at once: a subscription may have missed something. Only from the loop's own thread."""
        self._soon.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Sweep until `stop`; a page that is under way is finished then."""
        self._stop = stop
        await either(self.watch.ready.wait(), stop.wait())
        while not stop.is_set():
            self._soon.clear()
            seconds = self.retry_seconds
            try:
                seconds = self.every_seconds if await self.sweep() else 0.0
            except StoreUnavailable:
                _logger.warning("the sweep waits: the store is away")
            await either(self._soon.wait(), pause(stop, seconds))

    async def sweep(self) -> bool:
        """One round; False if there is more to be read at once. Raises `StoreUnavailable`."""
        treasury = self.watch.treasury
        if treasury is None or not self.quorum.usable:
            return True
        nodes = _turned(self.quorum.usable, self._round)
        self._round += 1
        slots = await _slots(nodes)
        missed = frozenset(await self.store.missed_lookups(_MISSED_MAX))
        gate = asyncio.Semaphore(self.at_once)
        sweeps = (self._sweep_account(row, nodes, slots, missed, gate) for row in treasury.accounts)
        done: list[bool | None] = []
        for outcome in await asyncio.gather(
            *sweeps, return_exceptions=True
        ):  # none is left running behind it
            if isinstance(outcome, BaseException):
                raise outcome
            done.append(outcome)
        if None not in done:
            self.meter.gauge("tempa_settlement_swept_timestamp_seconds", self.clock.now().timestamp())
        return False not in done

    async def swept(self, address: str) -> int:
        """Up to which slot everything that nodes show of an account is in the inbox, by two of them.

        By one, if the others may not be asked, or have lost its history.
        """
        keys = {cursor_key(node.name, address) for node in self.quorum.usable} - self._blind
        cursors = [await self.store.cursor(key) for key in keys]
        return common_slot(0 if one is None or one.unread else one.slot for one in cursors)

    async def _sweep_account(
        self,
        row: TreasuryAccount,
        nodes: Sequence[Chain],
        slots: dict[str, int],
        missed: frozenset[str],
        gate: asyncio.Semaphore,
    ) -> bool | None:
        """On the first node that can: whether all of it was read. None: no node could."""
        async with gate:
            for node in nodes:
                if node.name not in slots:
                    continue
                bound = min(slots[node.name], common_slot(slots.values()))
                take = partial(self._take, node.name, row, missed)
                done = await self._advance(Reader(node, row.address, bound, take, self.page_limit))
                if done is not None:
                    return done
        return None

    async def _advance(self, reader: Reader) -> bool | None:
        """Read the new part of an account's history, then some of what is still unread further down."""
        key = cursor_key(reader.node.name, reader.address)
        before = await self.store.cursor(key)
        is_first = before is None or before.unread is None
        read = await self._read(reader, head(before, reader.bound), self.pages_max if is_first else None)
        if read is None:
            return None
        newest, rest = read
        if rest is not None and not is_first:
            return None  # told to stop: there is place for one stretch that is left over
        cursor = advanced(before, reader.bound, newest, rest)
        crash_point("sweep.taken_in")
        await self.store.advance_cursor(key, cursor)
        if cursor.unread is None or rest is not None:
            return rest is None
        return await self._read_on(reader, key, cursor, cursor.unread)

    async def _read_on(self, reader: Reader, key: str, cursor: Cursor, unread: Unread) -> bool | None:
        read = await self._read(reader, unread, self.pages_max)
        if read is None:
            return None
        await self.store.advance_cursor(key, replace(cursor, unread=read[1]))
        return read[1] is None

    async def _read(
        self, reader: Reader, unread: Unread, pages_max: int | None
    ) -> tuple[str | None, Unread | None] | None:
        """The newest signature of a stretch, and what is left of it.

        None: the node cannot tell, or nothing was read before the stop: there is no place to go on from.
        """
        newest: str | None = None
        rest: Unread | None = unread
        pages = 0
        while rest is not None and not self._stop.is_set() and (pages_max is None or pages < pages_max):
            page = await self._page(reader, rest)
            if page is None:
                return None
            newest, rest = newest or page.newest, page.unread
            pages += 1
        return (newest, rest) if pages else None

    async def _page(self, reader: Reader, unread: Unread) -> Page | None:
        page = await reader.read(unread)
        outcome = page.reason if isinstance(page, Trouble) else "read"
        self.meter.count("tempa_settlement_sweep_pages_total", node=reader.node.name, outcome=outcome)
        key = cursor_key(reader.node.name, reader.address)
        if outcome == "history_lost":
            self._blind.add(key)
        elif outcome == "read":
            self._blind.discard(key)
        if isinstance(page, Trouble):
            _logger.warning("sweeping %s on %s: %s %s", reader.address, page.node, page.reason, page.detail)
            return None
        return page

    async def _take(
        self, node: str, row: TreasuryAccount, missed: frozenset[str], rows: Sequence[Sighting]
    ) -> None:
        """A page into the inbox; what no other node has shown so far is looked up anew."""
        found = [one for one in rows if one.signature not in self._known and _may_move(row, one)]
        if found:
            signatures = tuple(one.signature for one in found)
            raw = page_bytes(node, found, row.address)
            taken = await self.store.take_in(Incoming(source=SOURCE, raw=raw, signatures=signatures))
            self.meter.count("tempa_settlement_swept_total", taken.accepted, outcome="accepted")
            self.meter.count("tempa_settlement_swept_total", taken.duplicates, outcome="duplicate")
            self._remember(signatures)
        recalled = [one.signature for one in rows if one.signature in missed]
        if recalled:
            await self.store.recall_lookups(recalled)

    def _remember(self, signatures: Iterable[str]) -> None:
        for signature in signatures:
            self._known[signature] = None
        while len(self._known) > _KNOWN_MAX:
            self._known.popitem(last=False)


def page_bytes(node: str, rows: Sequence[Sighting], address: str | None = None) -> bytes:
    """What a node told, of an account or of several, as the inbox keeps it for people."""
    told = [
        {"signature": row.signature, "slot": row.slot, "failed": row.failed, "block_time": row.block_time}
        for row in rows
    ]
    return json.dumps({"node": node, "address": address, "sightings": told}, separators=(",", ":")).encode()


def _may_move(row: TreasuryAccount, sighting: Sighting) -> bool:
    """A transaction that failed moves nothing but its fee, which a wallet may have paid."""
    return row.asset == SOL or not sighting.failed


def _turned(nodes: Sequence[Chain], by: int) -> Sequence[Chain]:
    """Each has its turn to be asked first."""
    start = by % len(nodes)
    return [*nodes[start:], *nodes[:start]]


async def _slots(nodes: Sequence[Chain]) -> dict[str, int]:
    """What each has reached before anything is read of it."""
    answers = await asyncio.gather(*(node.slot() for node in nodes))
    told = zip(nodes, answers, strict=True)
    return {node.name: slot for node, slot in told if not isinstance(slot, Trouble)}
