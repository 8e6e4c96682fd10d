"""The inbox to the ledger: each signature is looked up on the chain, and what it paid is posted."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tempa.core.crash import crash_point
from tempa.core.errors import StoreUnavailable
from tempa.core.work import INBOX, either
from tempa.settlement.lookup import Patience, again
from tempa.settlement.post import Proven
from tempa.settlement.quorum import Agreed, Held

if TYPE_CHECKING:
    from random import Random

    from tempa.core.clock import Clock
    from tempa.core.metrics import Meter
    from tempa.core.work import Bell, Wake
    from tempa.settlement.inbox import InboxClaim
    from tempa.settlement.ports import SettlementStore
    from tempa.settlement.post import Terms
    from tempa.settlement.quorum import Quorum
    from tempa.settlement.watch import TreasuryWatch

_logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0  # the truth, should every ring be lost


@dataclass(kw_only=True)
class Settler:
    """Looks up what waits in the inbox, up to `lookups_max` at once, and posts it.

    `lease_seconds` is longer than any lookup takes: who dies meanwhile leaves it to the next after so long.
    """

    store: SettlementStore
    quorum: Quorum
    watch: TreasuryWatch
    terms: Terms
    wake: Wake
    clock: Clock
    meter: Meter
    rng: Random
    patience: Patience = field(default_factory=Patience)
    lookups_max: int = 32
    lease_seconds: float = 120.0
    name: str = "settler"
    _running: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop`; lookups that are under way are finished then."""
        await either(self.watch.ready.wait(), stop.wait())
        with self.wake.listen(INBOX) as bell:
            while not stop.is_set():
                seconds = await self._fill()
                if seconds > 0:
                    await self._wait(bell, stop, seconds)
        if self._running:
            await asyncio.wait(self._running)

    async def _fill(self) -> float:
        """Take as many lookups as may run; returns the seconds until there may be more, 0 for at once."""
        room = self.lookups_max - len(self._running)
        if room <= 0:
            return _POLL_SECONDS
        try:
            due_at = await self.store.next_lookup()  # before the claim: what comes due in between is claimed
            claims = await self.store.claim_inbox(room, self.lease_seconds)
        except StoreUnavailable:
            _logger.warning("the store is away; payments wait for it")
            return _POLL_SECONDS
        for claim in claims:
            self._start(claim)
        if claims:
            return 0.0
        if due_at is None:
            return _POLL_SECONDS
        return min(max((due_at - self.clock.now()).total_seconds(), 0.01), _POLL_SECONDS)

    async def _wait(self, bell: Bell, stop: asyncio.Event, seconds: float) -> None:
        """Until there may be something to take: a ring, room, or time."""
        if len(self._running) >= self.lookups_max:
            await asyncio.wait(self._running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        else:
            await either(bell.wait(seconds), stop.wait())

    def _start(self, claim: InboxClaim) -> None:
        crash_point("settle.claimed")
        task = asyncio.create_task(self._settle(claim))
        self._running.add(task)
        task.add_done_callback(partial(self._ended, claim))

    async def _settle(self, claim: InboxClaim) -> None:
        outcome = await self._check(claim.signature)
        crash_point("settle.checked")
        held = outcome if isinstance(outcome, Held) else await self._posted(claim, outcome)
        if held is None:
            return
        await self.store.settle_inbox([again(claim, held, self.clock.now(), self.patience, self.rng)])
        crash_point("settle.held")
        self.meter.count("tempa_settlement_lookups_total", outcome=held.reason)

    async def _check(self, signature: str) -> Agreed | Held:
        try:
            return await self.quorum.check(signature)
        except Exception:  # a fault of ours in one transaction must not keep the others waiting
            _logger.exception("a lookup broke", extra={"signature": signature})
            return Held("lookup_failed")

    async def _posted(self, claim: InboxClaim, agreed: Agreed) -> Held | None:
        """None: it is. Money that cannot be posted has to stand where a person sees it."""
        try:
            await self._post(claim, agreed)
        except StoreUnavailable:
            raise  # the lease ends, and it is looked up again
        except Exception:
            _logger.exception("posting broke", extra={"signature": claim.signature})
            return Held("lookup_failed")
        return None

    async def _post(self, claim: InboxClaim, agreed: Agreed) -> None:
        verdict = agreed.verdict
        evidence = [{"node": each.node, "answer": each.answer} for each in agreed.evidence]
        posted = await self.store.post_credits(Proven(verdict=verdict, terms=self.terms, evidence=evidence))
        crash_point("settle.posted")
        outcome = verdict.reason or ("suspended" if posted.suspended else "credited")
        self.meter.count("tempa_settlement_lookups_total", outcome=outcome)
        where = {"signature": claim.signature, "slot": verdict.slot}
        _logger.info("payment settled: %s", outcome, extra=where)
        for receipt in verdict.receipts if posted.receipts else ():
            self.meter.count("tempa_settlement_credits_total", asset=receipt.asset)
            if receipt.block_time is not None:
                age = self.clock.now().timestamp() - receipt.block_time
                self.meter.observe("tempa_settlement_credit_seconds", max(0.0, age))

    def _ended(self, claim: InboxClaim, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        where = {"signature": claim.signature}
        if isinstance(error, StoreUnavailable):
            _logger.warning("what a lookup came to could not be written; it is done again", extra=where)
        else:
            _logger.error("a lookup broke; it is done again", extra=where, exc_info=error)
