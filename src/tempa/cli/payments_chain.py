"""Asking the chain about a statement, or about everything: what `tempa payments` audits with."""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.cli.exits import NOT_REACHABLE, CommandFault
from tempa.cli.output import note
from tempa.cli.own_store import open_own
from tempa.cli.payments_nodes import open_nodes
from tempa.settlement.ports import Trouble
from tempa.settlement.quorum import Held
from tempa.settlement.reasons import is_again
from tempa.settlement.rebuild import Order, Rebuild, ReplayClock
from tempa.settlement.statement import read_line, verify_statement
from tempa.wiring.chain import terms_of
from tempa.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from tempa.settlement.ports import Chain, SettlementStore, Sighting
    from tempa.settlement.quorum import Agreed, Quorum
    from tempa.settlement.rebuild import Progress, Rebuilt
    from tempa.settlement.statement import Difference, Report, StatementLine
    from tempa.wiring.chain import Payments

_LOOKS = 5
_LOOK_SECONDS = 1.0
_HISTORY_PAGE = 1000
_TOLD_SECONDS = 2.0


async def verified(
    rows: Sequence[Mapping[str, Any]],
    rpc_urls: list[str] | None,
    treasury: str | None,
    mints: list[str] | None,
    config: Path | None,
    *,
    is_whole: bool,
) -> Report:
    """What the nodes say of a statement. Raises UsageFault, CommandFault."""
    async with open_nodes(config, rpc_urls, treasury, mints) as payments:
        await _look(payments)
        check = _Patient(payments.quorum)
        return await verify_statement(_lines(rows), check, is_whole=is_whole)


async def _lines(rows: Sequence[Mapping[str, Any]]) -> AsyncIterator[StatementLine | Difference]:
    for place, row in enumerate(rows, 1):
        yield read_line(place, row)


async def rebuilt(order: str, data: Path | None, config: Path | None) -> Rebuilt:
    """The ledger of a data directory, built anew beside it. `order`: of `Order`. Raises CommandFault."""
    settings, clock = load_settings(config), ReplayClock()
    async with (
        open_own(data, config) as own,
        open_nodes(config) as payments,
        _scratch(clock) as scratch,
    ):
        await _look(payments)
        return await Rebuild(
            source=own.store,
            scratch=scratch,
            clock=clock,
            sightings=_histories(payments),
            check=_Patient(payments.quorum),
            terms=terms_of(settings),
            grace_seconds=settings.payments.grace_seconds,
            order=Order(order),
            told=_Told(),
        ).run()


class _Told:
    """Says now and then how far it is."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, done: Progress) -> None:
        if time.monotonic() - self._last >= _TOLD_SECONDS:
            self._last = time.monotonic()
            note(f"{done.posted} of {done.found} transactions")


@asynccontextmanager
async def _scratch(clock: ReplayClock) -> AsyncIterator[SettlementStore]:
    """An empty ledger that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tempa-rebuild-") as folder:
        store = await SqliteStore.open(Path(folder) / "ledger.db", clock=clock, wake=InProcessWake(clock))
        try:
            yield store
        finally:
            await store.close()


async def _histories(payments: Payments) -> AsyncIterator[Sighting]:
    """All that every node has of every account: what one of them has lost another may have."""
    assert payments.watch.treasury is not None, "it was looked at"
    for address in sorted({row.address for row in payments.watch.treasury.accounts}):
        for node in payments.quorum.usable:
            async for sighting in _history(node, address):
                yield sighting


async def _history(node: Chain, address: str) -> AsyncIterator[Sighting]:
    """Newest first, to its end."""
    before: str | None = None
    while rows := await _page(node, address, before):
        for row in rows:
            yield row
        before = rows[-1].signature


async def _page(node: Chain, address: str, before: str | None) -> list[Sighting]:
    looks = 1
    while isinstance(told := await _asked(node, address, before), Trouble):
        if looks == _LOOKS:
            words = f"{told.node} does not give the history of {address}: {told.reason} {told.detail}"
            raise CommandFault(f"{words.rstrip()}.", code=NOT_REACHABLE)
        looks += 1
        await asyncio.sleep(told.retry_after_seconds or _LOOK_SECONDS)
    return told


async def _asked(node: Chain, address: str, before: str | None) -> list[Sighting] | Trouble:
    return await node.signatures_for_address(address, before=before, limit=_HISTORY_PAGE)


async def _look(payments: Payments) -> None:
    """Find the treasury's accounts. Raises CommandFault where the nodes do not tell of them."""
    for _ in range(_LOOKS):
        await payments.watch.look()
        if payments.watch.treasury is not None:
            return
        await asyncio.sleep(_LOOK_SECONDS)
    raise CommandFault(f"The treasury cannot be looked at. {payments.watch.said}", code=NOT_REACHABLE)


class _Patient:
    """Asks again where a node's trouble may pass."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum

    async def __call__(self, signature: str) -> Agreed | Held:
        looks = 1
        while isinstance(found := await self._quorum.check(signature), Held):
            if looks == _LOOKS or not is_again(found.reason):
                break
            looks += 1
            await asyncio.sleep(found.retry_after_seconds or _LOOK_SECONDS)
        return found
