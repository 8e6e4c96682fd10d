"""The watch over the treasury: which accounts are its own, and whether they are what they were."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from tempa.core.errors import StoreUnavailable
from tempa.core.work import pause
from tempa.settlement.anomalies import NewAnomaly
from tempa.settlement.derive import associated_account
from tempa.settlement.model import SOL, Treasury, TreasuryAccount
from tempa.settlement.ports import Trouble
from tempa.settlement.reasons import REASONS
from tempa.settlement.treasury import admitted, mint_terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.settlement.ports import Chain
    from tempa.settlement.post import Recorded
    from tempa.settlement.quorum import Quorum

_logger = logging.getLogger(__name__)

_SOL_DECIMALS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMint:
    """A token that the operator takes. What is None is read from the chain."""

    mint: str
    decimals: int | None = None
    program: str | None = None
    account: str | None = None
    extensions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Delay:
    """The treasury is not known yet, and why: a code of `reasons`, and what it is about."""

    reason: str
    detail: str


class Noticeboard(Protocol):
    """What the watch asks of a `SettlementStore`: which chain the ledger is of, and to tell people."""

    async def receipts(self, after: int, limit: int) -> list[Recorded]: ...
    async def note_anomaly(self, new: NewAnomaly) -> None: ...
    async def clear_anomaly(self, key: str, resolution: str) -> bool: ...


@dataclass(kw_only=True)
class TreasuryWatch:
    """Finds the treasury's accounts at start, then looks at them, and at the nodes, again and again.

    Until everything that is listed was found, `treasury` is None and nothing is looked up: money that comes
    meanwhile would be called nobody's.

    - `wallet`: the treasury's address.
    - `cluster`: the chain's genesis hash; empty: that of the ledger, else what the nodes say.
    """

    quorum: Quorum
    store: Noticeboard
    wallet: str
    mints: Sequence[ListedMint]
    cluster: str = ""
    dust: Mapping[str, int] = field(default_factory=dict)
    every_seconds: float = 10.0
    retry_seconds: float = 1.0
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    name: str = "treasury-watch"
    said: str = ""  # why payments wait, while the treasury is not known
    _told: dict[str, str] = field(default_factory=dict)  # by account, what was said of it last

    @property
    def treasury(self) -> Treasury | None:
        """As last seen; None until it was found."""
        return self.quorum.treasury if self.ready.is_set() else None

    async def known(self, seconds: float) -> Treasury | None:
        """`treasury`, waited for up to so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ready.wait()
        return self.treasury

    async def run(self, stop: asyncio.Event) -> None:
        """Look every `every_seconds`; sooner while the treasury is not known."""
        while not stop.is_set():
            try:
                await self.look()
            except StoreUnavailable:
                _logger.warning("looking at the treasury waits: the store is away")
            await pause(stop, self.every_seconds if self.ready.is_set() else self.retry_seconds)

    async def look(self) -> None:
        """See which nodes are fit, then the accounts and mints. Raises `StoreUnavailable`."""
        if not self.quorum.treasury.cluster:
            cluster = await self._cluster()
            if isinstance(cluster, Delay):
                return self._wait(cluster)
            self.quorum.treasury = Treasury(cluster=cluster, accounts=(), dust=self.dust)
        await self.quorum.look()
        if not self.ready.is_set() and not self.quorum.usable:
            return self._wait(Delay(*_excluded(self.quorum)))
        found = self.quorum.treasury if self.ready.is_set() else await self._find()
        if isinstance(found, Delay):
            return self._wait(found)
        seen = await self._admitted(found)
        if isinstance(seen, Delay):  # once known it is what it was, until a node tells otherwise
            return None if self.ready.is_set() else self._wait(seen)
        await self._tell(seen)
        self.quorum.treasury = seen
        if not self.ready.is_set():
            self.ready.set()
            _logger.info("the treasury is known: %d accounts", len(seen.accounts))
        return None

    def _wait(self, delay: Delay) -> None:
        """Say once that payments wait, and why."""
        said = f"{REASONS[delay.reason].words} ({delay.detail})"
        if self.said != said:
            _logger.warning("payments wait: %s", said)
            self.said = said

    async def _cluster(self) -> str | Delay:
        """The chain all of it is about. A ledger has one: another chain's money would stand beside it."""
        ledger = await self.store.receipts(0, 1)
        known = ledger[0].receipt.cluster if ledger else ""
        if self.cluster and known and self.cluster != known:
            return Delay("wrong_cluster", f"solana.cluster is {self.cluster}, the ledger's {known}")
        if self.cluster or known:
            return self.cluster or known
        answers = await asyncio.gather(*(node.genesis_hash() for node in self.quorum.nodes))
        told = {answer for answer in answers if not isinstance(answer, Trouble)}
        if len(told) > 1:
            return Delay("nodes_disagree", "solana.rpc_urls lead to nodes of different chains")
        if not told:
            return Delay(*_trouble(answers))
        return told.pop()

    async def _find(self) -> Treasury | Delay:
        wallet = TreasuryAccount(
            asset=SOL, address=self.wallet, owner=self.wallet, program=None, decimals=_SOL_DECIMALS
        )
        rows = [wallet]
        for mint in self.mints:
            row = await self._row(mint)
            if isinstance(row, Delay):
                return row
            rows.append(row)
        return Treasury(cluster=self.quorum.treasury.cluster, accounts=tuple(rows), dust=self.dust)

    async def _row(self, mint: ListedMint) -> TreasuryAccount | Delay:
        program, decimals = mint.program, mint.decimals
        if program is None or decimals is None:
            told = await self._mint_terms(mint.mint)
            if isinstance(told, Delay):
                return told
            program, decimals = program or told[0], told[1] if decimals is None else decimals
        return TreasuryAccount(
            asset=mint.mint,
            address=mint.account or associated_account(self.wallet, mint.mint, program),
            owner=self.wallet,
            program=program,
            decimals=decimals,
            extensions=mint.extensions,
        )

    async def _mint_terms(self, mint: str) -> tuple[str, int] | Delay:
        """Program and decimals, in which all nodes that answer have to agree: amounts are shown by them."""
        told: set[tuple[str, int] | None] = set()
        answers = await self._ask_all(mint)
        for answer in answers:
            if not isinstance(answer, Trouble):
                told.add(mint_terms(answer))
        if not told:
            return Delay(*_trouble(answers))
        if len(told) > 1:
            return Delay("nodes_disagree", f"about the mint {mint}")
        return told.pop() or Delay("mint_unreadable", mint)

    async def _ask_all(self, address: str) -> Sequence[Mapping[str, Any] | Trouble | None]:
        asked = (_state(node, address) for node in self.quorum.usable)
        return await asyncio.gather(*asked)

    async def _admitted(self, treasury: Treasury) -> Treasury | Delay:
        """Refused is what any node refuses: one that lies or lags cannot hide a freeze or a delegate."""
        looks = await asyncio.gather(*(_looked_at(node, treasury) for node in self.quorum.usable))
        seen = [look for look in looks if not isinstance(look, Trouble)]
        if not seen:
            return Delay(*_trouble(looks))
        rows = zip(*(look.accounts for look in seen), strict=True)
        return replace(treasury, accounts=tuple(map(_strictest, rows)))

    async def _tell(self, seen: Treasury) -> None:
        """Of what changed: an alarm for a person where nothing may be credited any more."""
        for row in seen.accounts:
            if self._told.get(row.address) == (row.refusal or ""):
                continue
            if row.refusal:
                _logger.error("%s takes nothing: %s", row.address, REASONS[row.refusal].words)
                await self.store.note_anomaly(_alarm(row))
            elif await self.store.clear_anomaly(_key(row), "The account and its mint are in order again."):
                _logger.info("%s takes payments again", row.address)
            self._told[row.address] = row.refusal or ""


async def _looked_at(node: Chain, treasury: Treasury) -> Treasury | Trouble:
    """The treasury as one node shows it."""
    addresses = {place for row in treasury.accounts if row.asset != SOL for place in (row.address, row.asset)}
    states: dict[str, Mapping[str, Any] | None] = {}
    for address in sorted(addresses):
        state = await _state(node, address)
        if isinstance(state, Trouble):
            return state
        states[address] = state
    return admitted(treasury, states)


def _strictest(views: Sequence[TreasuryAccount]) -> TreasuryAccount:
    """Of one account as each node shows it."""
    return next((row for row in views if row.refusal), views[0])


def _key(row: TreasuryAccount) -> str:
    return f"treasury:{row.address}"


def _alarm(row: TreasuryAccount) -> NewAnomaly:
    assert row.refusal is not None
    return NewAnomaly(
        key=_key(row),
        reason=row.refusal,
        detail=REASONS[row.refusal].words,
        asset=row.asset,
        account=row.address,
    )


async def _state(node: Chain, address: str) -> Mapping[str, Any] | Trouble | None:
    answer = await node.account(address)
    if isinstance(answer, Trouble):
        return answer
    return answer.value


def _excluded(quorum: Quorum) -> tuple[str, str]:
    """Why the first of the nodes may not be asked, of which none may."""
    node, reason = next(iter(quorum.excluded.items()))
    return reason, node


def _trouble(answers: Sequence[object]) -> tuple[str, str]:
    """What the first of the nodes that did not answer said."""
    troubles = [answer for answer in answers if isinstance(answer, Trouble)]
    if not troubles:
        return "nodes_too_few", "no node may be asked"
    return troubles[0].reason, f"{troubles[0].node}: {troubles[0].detail}"
