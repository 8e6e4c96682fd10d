"""Carries refunds out: has them signed, sends them, and follows each until the chain has it or never will."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tempa.core.crash import crash_point
from tempa.core.errors import StoreUnavailable
from tempa.core.work import pause
from tempa.settlement.anomalies import NewAnomaly
from tempa.settlement.ports import NotFound, Trouble
from tempa.settlement.post import Proven
from tempa.settlement.quorum import Held
from tempa.settlement.refund_doubts import is_wallet, was_sent
from tempa.settlement.refund_order import deviation, order_of, row_of
from tempa.settlement.refunds import Outcome, fault_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.settlement.ports import Chain, Outlet, SettlementStore, Signer
    from tempa.settlement.post import Terms
    from tempa.settlement.quorum import Agreed, Quorum
    from tempa.settlement.refund_order import Order
    from tempa.settlement.refunds import Refund, Signed, Signing

_logger = logging.getLogger(__name__)

LIFE_BLOCKS = 150
"""How long a blockhash is good for (`MAX_PROCESSING_AGE` of Agave)."""

LAG_BLOCKS = 150
"""How far a node's backends may be behind what another of them tells: as `quorum.SLOT_LAG_MAX`."""

_PAGE = 100


@dataclass(kw_only=True)
class Refunder:
    """Takes the next step with each open refund, every `every_seconds`. One may run at a time, or several.

    - `quorum`: looks at what became of a transaction; its treasury is known.
    - `signer`: has the key; None: what is requested waits.
    - `outlets`: nodes that are given transactions, all of them.
    - `nodes_needed`: how many have to show that a transaction can land no more, or that none was sent, of
      those that there are.
    """

    store: SettlementStore
    quorum: Quorum
    terms: Terms
    signer: Signer | None
    outlets: Sequence[Outlet]
    nodes_needed: int = 2
    every_seconds: float = 2.0
    name: str = "refunder"
    _doubted: set[str] = field(default_factory=set)  # a person has to see to them; told of once

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop`."""
        while not stop.is_set():
            try:
                await self.round()
            except StoreUnavailable:
                _logger.warning("refunds wait: the store is away")
            await pause(stop, self.every_seconds)

    async def round(self) -> None:
        """One step with each open refund. A faulty one holds up no other. Raises `StoreUnavailable`."""
        after = ""
        while page := await self.store.open_refunds(after, _PAGE):
            for refund in page:
                try:
                    await self.step(refund)
                except StoreUnavailable:
                    raise
                except Exception:
                    _logger.exception("the refund %s could not be taken further", refund.id)
            after = page[-1].id

    async def step(self, refund: Refund) -> None:
        """The next thing to do about a refund. May be broken off anywhere, and done again."""
        live = refund.live
        if live is None:
            await self._sign(refund)
        elif live.sent_at is None:
            await self._send(refund, live.signature, live.raw)
        else:
            await self._follow(refund, live)

    async def _sign(self, refund: Refund) -> None:
        """On disk first. How long it may land is not left to the signer's word alone."""
        if self.signer is None or refund.id in self._doubted:
            return
        row = row_of(refund, self.quorum.treasury)
        if isinstance(row, str):
            _logger.warning("the refund %s is not signed: %s", refund.id, row)
        elif await self._is_clear(refund):
            order = order_of(refund, row)
            signed = await self.signer.sign(refund, order)
            if isinstance(signed, Trouble):
                why = signed.detail or signed.reason
                _logger.warning("the refund %s is not signed: %s", refund.id, why)
            else:
                await self._keep(refund, order, signed)

    async def _keep(self, refund: Refund, order: Order, signed: Signed) -> None:
        fault = fault_of(signed) or deviation(signed.raw, order)
        height = await self._height()
        if fault is not None or height is None:
            _logger.error("the refund %s is signed, and not kept: %s", refund.id, fault or "no node answers")
            return
        longest = max(signed.last_valid_height, height + LIFE_BLOCKS + LAG_BLOCKS)
        if await self.store.keep_signing(refund.id, replace(signed, last_valid_height=longest)):
            crash_point("refund.signed")
            await self._send(refund, signed.signature, signed.raw)  # at once: its blockhash grows old

    async def _is_clear(self, refund: Refund) -> bool:
        """Whether the chain shows nothing against it. What cannot be asked now is asked again."""
        nodes, needed = self.quorum.usable, self._needed
        sent = await was_sent(refund, nodes, needed)
        if sent:
            await self._doubt(refund, "refund_sent_before")
        wallet = await is_wallet(refund.destination, nodes, needed) if sent is False else None
        if wallet is False:
            await self._doubt(refund, "refund_no_wallet")
        if refund.id not in self._doubted and wallet is None:
            _logger.warning("the refund %s waits: not enough nodes tell of what was sent", refund.id)
        return wallet is True

    @property
    def _needed(self) -> int:
        return min(self.nodes_needed, len(self.quorum.nodes))

    async def _doubt(self, refund: Refund, reason: str) -> None:
        self._doubted.add(refund.id)
        _logger.error("the refund %s is not signed: %s", refund.id, reason)
        await self._note(refund, reason, f"refund {refund.id} to {refund.destination}", refund.signature)

    async def _height(self) -> int | None:
        """The highest that a node tells now: what was signed before goes by a block at most so much later."""
        answers = await asyncio.gather(*(node.block_height() for node in self.quorum.usable))
        return max((answer for answer in answers if not isinstance(answer, Trouble)), default=None)

    async def _send(self, refund: Refund, signature: str, raw: bytes) -> None:
        if await self.store.note_sent(refund.id, signature):
            crash_point("refund.noted")
            await self._hand_in(refund, raw)
            crash_point("refund.sent")

    async def _hand_in(self, refund: Refund, raw: bytes) -> None:
        answers = await asyncio.gather(*(outlet.send(raw) for outlet in self.outlets))
        for answer in answers:
            if isinstance(answer, Trouble):
                _logger.info("a node did not take the refund %s: %s", refund.id, answer.detail)

    async def _follow(self, refund: Refund, live: Signing) -> None:
        found = await self.quorum.check(live.signature)
        if not isinstance(found, Held):
            await self._ended(refund, live, found)
        elif found.reason == "not_found_yet":
            if await self._can_land_no_more(live):
                await self.store.end_signing(refund.id, live.signature, Outcome.EXPIRED)
            else:
                await self._hand_in(refund, live.raw)

    async def _ended(self, refund: Refund, live: Signing, found: Agreed) -> None:
        """What left the treasury is posted first; a refund is final only behind that."""
        evidence = [{"node": each.node, "answer": each.answer} for each in found.evidence]
        await self.store.post_credits(Proven(verdict=found.verdict, terms=self.terms, evidence=evidence))
        if found.verdict.reason == "transaction_failed":
            why = f"it failed on the chain: {found.verdict.error}"
            await self.store.end_signing(refund.id, live.signature, Outcome.FAILED, why)
        elif await self.store.end_signing(refund.id, live.signature, Outcome.FINAL) is None:
            await self._warn(refund, live)

    async def _warn(self, refund: Refund, live: Signing) -> None:
        """It landed, and took something else: nothing is signed any more until a person has seen to it."""
        now = await self.store.refund(refund.id)
        if now is None or now.ended_at is not None:
            return  # another has ended it meanwhile
        _logger.error("the refund %s landed, and did not take %s from the treasury", refund.id, refund.amount)
        detail = f"refund {refund.id} was of {refund.amount}"
        await self._note(refund, "refund_mismatch", detail, live.signature)

    async def _note(self, refund: Refund, reason: str, detail: str, signature: str) -> None:
        await self.store.note_anomaly(
            NewAnomaly(
                key=f"refund:{refund.id}",
                reason=reason,
                signature=signature,
                detail=detail,
                asset=refund.asset,
                account=refund.account,
            )
        )

    async def _can_land_no_more(self, live: Signing) -> bool:
        """By enough nodes that are past its height at finality, and do not show it then: in this order.

        One that shows it outvotes all others; one that cannot be asked only does not count.
        """
        answers = await asyncio.gather(*(_is_past(node, live) for node in self.quorum.usable))
        return False not in answers and answers.count(True) >= self._needed


async def _is_past(node: Chain, live: Signing) -> bool | None:
    """None: it cannot tell. False: it shows it."""
    height = await node.block_height()
    if isinstance(height, Trouble) or height <= live.last_valid_height + LAG_BLOCKS:
        return None
    found = await node.get_transaction(live.signature)
    if isinstance(found, Trouble):
        return None
    return isinstance(found, NotFound)
