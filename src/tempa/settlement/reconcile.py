"""Reconciliation: what came in less what went out, by the ledger, is what the chain shows; else people hear.

Both sides are of the same slot. A balance is read first, and compared once everything up to its slot has been
swept and looked up; so a payment on its way is no mismatch. One that stands for two checks is.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tempa.core.errors import StoreUnavailable
from tempa.core.work import either, pause
from tempa.settlement.anomalies import NewAnomaly
from tempa.settlement.answer import UnreadableError
from tempa.settlement.journal import GENESIS, first_broken, treasury_account
from tempa.settlement.ports import Trouble
from tempa.settlement.post import Flows
from tempa.settlement.sweep import SOURCE
from tempa.settlement.treasury import balance

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping
    from datetime import datetime

    from tempa.core.clock import Clock
    from tempa.core.metrics import Meter
    from tempa.settlement.model import TreasuryAccount
    from tempa.settlement.ports import Chain, SettlementStore
    from tempa.settlement.quorum import Quorum
    from tempa.settlement.watch import TreasuryWatch

_logger = logging.getLogger(__name__)

JOURNAL_KEY = "journal"

_PAGE = 200  # entries: some milliseconds of the loop
_HELD_SECONDS = 900.0  # what is looked up for longer waits for a person, and its money is missing indeed


def balance_key(address: str) -> str:
    """Of the anomaly about one account's balance."""
    return f"balance:{address}"


class Swept(Protocol):
    """Up to which slot everything that nodes show of an account is in the inbox."""

    async def __call__(self, address: str) -> int: ...


class Seen(NamedTuple):
    """What a node says that an account holds as of a slot, in base units."""

    slot: int
    amount: int


@dataclass(kw_only=True)
class Reconciler:
    """Checks balances and the journal every `every_seconds`.

    - `swept`: a `Sweeper`'s.
    - `patience_seconds`: between two looks whether a balance can be compared yet.
    - `entries_max`: of the journal, verified in a round; the next goes on there, and begins anew at its end.
    """

    store: SettlementStore
    quorum: Quorum
    watch: TreasuryWatch
    swept: Swept
    clock: Clock
    meter: Meter
    every_seconds: float = 300.0
    patience_seconds: float = 2.0
    entries_max: int = 10_000
    name: str = "reconciler"
    _round: int = 0
    _off: dict[str, int] = field(default_factory=dict)  # by account, the difference of the last check
    _swept_at: dict[str, datetime] = field(default_factory=dict)  # since when the sweep is beyond a look
    _verified: tuple[int, str] = (0, GENESIS)

    async def run(self, stop: asyncio.Event) -> None:
        """Check until `stop`."""
        await either(self.watch.ready.wait(), stop.wait())
        while not stop.is_set():
            seen: dict[str, Seen] = {}
            try:
                seen = await self.look()
                await self.check_journal()
                await self._compare_all(seen, stop)
            except StoreUnavailable:
                _logger.warning("reconciliation waits: the store is away")
            await pause(stop, self.every_seconds)

    async def look(self) -> dict[str, Seen]:
        """The balance of each of the treasury's accounts, by address, each time from another node first."""
        nodes = self.quorum.usable
        self._round += 1
        self._swept_at.clear()
        seen: dict[str, Seen] = {}
        for row in self._rows():
            for turn in range(len(nodes)):
                found = await _seen(nodes[(self._round + turn) % len(nodes)], row)
                if found is not None:
                    seen[row.address] = found
                    break
        return seen

    async def compare(self, address: str, seen: Seen) -> bool:
        """Compare an account, if it can be yet. Raises `StoreUnavailable`."""
        row = next((row for row in self._rows() if row.address == address), None)
        if row is None:
            return True
        if await self.swept(address) < seen.slot:
            return False
        now = self.clock.now()
        swept_at = self._swept_at.setdefault(address, now)  # what comes later is of later slots
        held = timedelta(seconds=_HELD_SECONDS)
        if await self.store.is_looking_up(SOURCE, now - held, swept_at):
            return False
        flows = (await self.store.flows(seen.slot)).get((row.asset, address), Flows())
        await self._judge(row, seen, flows.received - flows.sent)
        return True

    async def check_journal(self) -> None:
        """Verify a stretch of the chain of hashes, and all sums. Raises `StoreUnavailable`."""
        fault = await self._broken() or await self._unbalanced()
        if fault is None:
            await self.store.clear_anomaly(JOURNAL_KEY, "verified")
            return
        _logger.error("the journal is broken: %s", fault)
        await self.store.note_anomaly(NewAnomaly(key=JOURNAL_KEY, reason="journal_broken", detail=fault))

    async def _compare_all(self, seen: Mapping[str, Seen], stop: asyncio.Event) -> None:
        """As soon as each can be; what cannot until the next check is looked at anew then."""
        waiting = dict(seen)
        end = self.clock.monotonic() + self.every_seconds
        while waiting and not stop.is_set() and self.clock.monotonic() < end:
            for address in list(waiting):
                if await self.compare(address, waiting[address]):
                    del waiting[address]
            if waiting:
                await pause(stop, self.patience_seconds)

    async def _judge(self, row: TreasuryAccount, seen: Seen, booked: int) -> None:
        difference = seen.amount - booked
        stands = difference != 0 and self._off.get(row.address, 0) != 0
        self._off[row.address] = difference
        if stands or difference == 0:
            where = {"asset": row.asset, "account": row.address}
            self.meter.gauge("tempa_settlement_mismatch", difference, **where)
        if difference == 0:
            await self.store.clear_anomaly(balance_key(row.address), "agreed")
        elif stands:
            await self._tell(row, seen, booked)

    async def _tell(self, row: TreasuryAccount, seen: Seen, booked: int) -> None:
        detail = f"slot {seen.slot}: the chain has {seen.amount}, the ledger {booked} base units"
        _logger.error("%s: %s", row.address, detail)
        await self.store.note_anomaly(
            NewAnomaly(
                key=balance_key(row.address),
                reason="balance_mismatch",
                detail=detail,
                asset=row.asset,
                account=row.address,
            )
        )

    async def _broken(self) -> str | None:
        """The entry that is not what was written behind its predecessor."""
        for _ in range(max(1, self.entries_max // _PAGE)):
            number, last = self._verified
            page = await self.store.journal(number, _PAGE)
            broken = first_broken(page, last)
            if broken is not None:
                self._verified = (0, GENESIS)
                return f"entry {broken} does not follow"
            if len(page) < _PAGE:
                self._verified = (0, GENESIS)
                return None
            self._verified = (page[-1].number, page[-1].hash)
        return None

    async def _unbalanced(self) -> str | None:
        """The asset whose lines do not sum to zero, or not to what came in less what went out."""
        flows = await self.store.flows()
        balances = await self.store.balances()
        is_quiet = flows == await self.store.flows()  # else payments were posted between the two readings
        for asset, total in sums_by_asset(balances).items():
            if total:
                return f"all lines in {asset} sum to {total}"
            booked = balances.get((treasury_account(asset), asset), 0)
            held = sum(flow.received - flow.sent for place, flow in flows.items() if place[0] == asset)
            if is_quiet and booked != held:
                return f"the journal has {booked} in {asset}, receipts less outflows are {held}"
        return None

    def _rows(self) -> tuple[TreasuryAccount, ...]:
        return () if self.watch.treasury is None else self.watch.treasury.accounts


def sums_by_asset(balances: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Debits less credits over all accounts: 0 in each asset, as each entry is balanced."""
    sums: dict[str, int] = defaultdict(int)
    for (_, asset), amount in balances.items():
        sums[asset] += amount
    return dict(sums)


async def _seen(node: Chain, row: TreasuryAccount) -> Seen | None:
    state = await node.account(row.address)
    if isinstance(state, Trouble):
        return None
    try:
        return Seen(state.slot, balance(row, state.value))
    except UnreadableError:
        return None
