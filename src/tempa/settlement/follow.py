"""Quotes from the first word of their payment to its finality: looked for by their references.

Each reference is looked for where nodes show what is not final yet, if there are such clients, so that who
has paid sees it. A transaction is only shown if it pays the quote that it names: anybody can put a reference
into a transfer of his own. Once it is final it goes into the inbox, before all that waits there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.core.errors import StoreUnavailable
from tempa.core.work import either, pause
from tempa.settlement.derive import associated_account
from tempa.settlement.inbox import Incoming
from tempa.settlement.model import SOL, QuoteStatus, Treasury, TreasuryAccount
from tempa.settlement.ports import Found, Trouble
from tempa.settlement.quotes import QuoteSighting
from tempa.settlement.sweep import page_bytes
from tempa.settlement.transfers import TOKEN, TOKEN_2022
from tempa.settlement.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from tempa.core.clock import Clock
    from tempa.core.metrics import Meter
    from tempa.settlement.ports import Chain, Place, SettlementStore, Sighting
    from tempa.settlement.quorum import Quorum
    from tempa.settlement.quotes import Quote
    from tempa.settlement.watch import TreasuryWatch

_logger = logging.getLogger(__name__)

SOURCE = "reference"

_UNPAID = {
    QuoteStatus.OPEN,
    QuoteStatus.SEEN,
    QuoteStatus.FINAL,
    QuoteStatus.PARTIAL,
    QuoteStatus.EXPIRED,
}
_ROWS_MAX = 100  # of one reference: more is somebody's play, and the sweep finds what pays
_SETTLED_MAX = 65_536
_SIGHTED_MAX = 4096
_GRACE_SECONDS = 60.0  # behind its end a quote is still looked for as often as before


@dataclass(frozen=True, slots=True)
class _Sighted:
    """A payment of a quote that is not final yet."""

    quote: Quote
    sighting: Sighting
    pays: bool  # False: it names the quote and pays what is not taken now; people see it once it is final


@dataclass(kw_only=True)
class Follower:
    """Looks for the payments of quotes, a slice of them each `every_seconds`.

    - `glances`: clients of nodes at `confirmed`; empty: quotes are shown as paid once it is final.
    - `open_max`: quotes of a slice that can be paid now.
    - `past_max`: quotes of a slice whose time is over, of the last `past_days`; each of them once in
      `past_seconds` at most.
    - `at_once`: calls to nodes.
    """

    store: SettlementStore
    quorum: Quorum
    watch: TreasuryWatch
    clock: Clock
    meter: Meter
    glances: Sequence[Chain] = ()
    every_seconds: float = 2.0
    open_max: int = 50
    past_max: int = 5
    past_days: float = 30.0
    past_seconds: float = 60.0
    at_once: int = 8
    name: str = "follower"
    _open_place: Place | None = None
    _past_place: Place | None = None
    _past_due: float = 0.0  # by the clock's monotonic time
    _round: int = 0
    _settled: OrderedDict[str, None] = field(default_factory=OrderedDict)  # nothing more to be seen of them
    _sighted: dict[str, _Sighted] = field(default_factory=dict)

    async def run(self, stop: asyncio.Event) -> None:
        """Look until `stop`."""
        await either(self.watch.ready.wait(), stop.wait())
        while not stop.is_set():
            try:
                await self.look()
            except StoreUnavailable:
                _logger.warning("following payments waits: the store is away")
            await pause(stop, self.every_seconds)

    async def look(self) -> None:
        """One slice, and how far what was sighted has come. Raises `StoreUnavailable`."""
        if self.watch.treasury is None or not self.quorum.usable:
            return
        self._round += 1
        quotes = await self._slice()
        gate = asyncio.Semaphore(self.at_once)
        found = await asyncio.gather(*(self._look_for(quote, gate) for quote in quotes))
        fresh = {one.sighting.signature: one for rows in found for one in rows}
        await self._note(fresh.values(), is_final=False)
        self._sighted |= fresh
        await self._finish()

    async def _slice(self) -> list[Quote]:
        since = self.clock.now() - timedelta(seconds=_GRACE_SECONDS)
        opened, self._open_place = await self.store.watched_quotes(since, self._open_place, self.open_max)
        past = await self._past(since)
        return [quote for quote in (*opened, *past) if quote.status in _UNPAID]

    async def _past(self, until: datetime) -> list[Quote]:
        """Some of those that ended before; none while it is too early to begin with the first one again."""
        if self._past_place is None:
            if self.clock.monotonic() < self._past_due:
                return []
            self._past_due = self.clock.monotonic() + self.past_seconds
        since = self.clock.now() - timedelta(days=self.past_days)
        past, place = await self.store.watched_quotes(since, self._past_place, self.past_max)
        over = [quote for quote in past if quote.offer.expires_at <= until]
        self._past_place = place if len(over) == len(past) else None
        return over

    async def _look_for(self, quote: Quote, gate: asyncio.Semaphore) -> list[_Sighted]:
        """What pays this quote and was not seen before."""
        async with gate:
            for node in self._nodes():
                rows = await node.signatures_for_address(quote.offer.reference, limit=_ROWS_MAX)
                outcome = rows.reason if isinstance(rows, Trouble) else "read"
                self.meter.count("tempa_settlement_reference_looks_total", outcome=outcome)
                if not isinstance(rows, Trouble):
                    looked = [await self._looked_at(node, quote, row) for row in rows]
                    return [sighted for sighted in looked if sighted is not None]
        return []

    def _nodes(self) -> tuple[Chain, ...]:
        """Two at most: one that shows what is not final, and one of the others for its troubles."""
        return (*self._turn(self.glances), *self._turn(self.quorum.usable))

    def _turn(self, nodes: Sequence[Chain]) -> Sequence[Chain]:
        """The one whose turn it is; none if there is none: the watch may exclude the last at any time."""
        return [nodes[self._round % len(nodes)]] if nodes else []

    async def _looked_at(self, node: Chain, quote: Quote, row: Sighting) -> _Sighted | None:
        """What is new and pays the quote, or paid what was the treasury's when it was made."""
        signature = row.signature
        if row.failed or signature in self._settled or signature in self._sighted:
            return None
        answer = await node.get_transaction(signature)
        if not isinstance(answer, Found) or self.watch.treasury is None or len(self._sighted) >= _SIGHTED_MAX:
            return None  # it is asked for again
        treasury = self.watch.treasury
        if _pays(quote, treasury, answer, signature):
            return _Sighted(quote, row, pays=True)
        if _pays(quote, _as_quoted(quote, treasury.cluster), answer, signature):
            return _Sighted(quote, row, pays=False)
        self._settle(signature)
        return None

    async def _finish(self) -> None:
        """What has become final goes into the inbox. What a node does not know has vanished with its fork."""
        signatures = list(self._sighted)
        nodes = self._turn(self.quorum.usable)
        if not signatures or not nodes:
            return
        (node,) = nodes
        statuses = await node.statuses(signatures)
        if isinstance(statuses, Trouble):
            return
        told = dict(zip(signatures, statuses, strict=True))
        for signature in [signature for signature, status in told.items() if status is None]:
            del self._sighted[signature]
        done = [
            signature for signature, status in told.items() if status and status.commitment == "finalized"
        ]
        await self._take_in(node.name, done)

    async def _take_in(self, node: str, signatures: Sequence[str]) -> None:
        """The quotes show it before it is booked: what was booked is not changed any more."""
        if not signatures:
            return
        final = [self._sighted[signature] for signature in signatures]
        await self._note(final, is_final=True)
        for pays in (True, False):  # what pays is looked up before all that waits
            some = [one.sighting for one in final if one.pays is pays]
            if some:
                told = tuple(one.signature for one in some)
                raw = page_bytes(node, some)
                await self.store.take_in(Incoming(source=SOURCE, raw=raw, signatures=told, is_urgent=pays))
        for signature in signatures:
            del self._sighted[signature]
            self._settle(signature)

    async def _note(self, sighted: Iterable[_Sighted], *, is_final: bool) -> None:
        sightings = [
            QuoteSighting(
                name=one.quote.offer.reference,
                quote_id="",
                slot=one.sighting.slot,
                signature=one.sighting.signature,
                is_final=is_final,
            )
            for one in sighted
            if one.pays
        ]
        if sightings:
            await self.store.note_progress(sightings)

    def _settle(self, signature: str) -> None:
        self._settled[signature] = None
        if len(self._settled) > _SETTLED_MAX:
            self._settled.popitem(last=False)


def _pays(quote: Quote, treasury: Treasury, found: Found, signature: str) -> bool:
    """Whether a transaction is money for a quote, to one of these accounts."""
    offer = quote.offer
    receipts = verify(found.answer, treasury, signature).receipts
    return any(one.asset == offer.asset and offer.reference in one.references for one in receipts)


def _as_quoted(quote: Quote, cluster: str) -> Treasury:
    """The accounts that a wallet pays by the quote, whatever the settings say by now."""
    offer = quote.offer
    places: list[tuple[str, str | None]] = [(offer.treasury, None)]
    if offer.asset != SOL:
        places = [
            (associated_account(offer.treasury, offer.asset, program), program)
            for program in (TOKEN, TOKEN_2022)
        ]
    rows = (
        TreasuryAccount(
            asset=offer.asset,
            address=address,
            owner=offer.treasury,
            program=program,
            decimals=offer.decimals,
        )
        for address, program in places
    )
    return Treasury(cluster=cluster, accounts=tuple(rows))
