"""What people did, done again in a ledger that is built anew: prices, suspensions, gifts and refunds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.settlement.refunds import NewRefund, Outcome, Signed
from tempa.settlement.rentals import ActKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.settlement.anomalies import Anomaly
    from tempa.settlement.journal import JournalEntry
    from tempa.settlement.ports import SettlementStore
    from tempa.settlement.post import Terms
    from tempa.settlement.rentals import InstanceAct

_BY_HAND = "rebuilt"


@dataclass(frozen=True, slots=True)
class Replay:
    """Does in `scratch` what was done in `source`; what cannot be done again goes to `undone`, in words."""

    source: SettlementStore
    scratch: SettlementStore
    terms: Terms
    undone: list[str]

    async def act(self, act: InstanceAct) -> None:
        """To an instance."""
        match act.kind:
            case ActKind.PRICED:
                done = await self.scratch.change_prices(act.gpu_instance_id, act.prices or ())
            case ActKind.SUSPENDED:
                done = await self.scratch.suspend_instance(act.gpu_instance_id)
            case _:
                done = await self.scratch.resume_instance(act.gpu_instance_id)
        if not done:
            self.undone.append(f"{act.gpu_instance_id} could not be {act.kind} again")

    async def entries(self, entries: Sequence[JournalEntry]) -> None:
        """What one act wrote into the journal."""
        entry = entries[0]
        match entry.draft.kind:
            case "allocation":
                await self._give(entries)
            case "refund_requested":
                await self._refund(entry)
            case "refund_final":
                await self._end_refund(entry)
            case "refund_failed":
                await self._fail_refund(entry)
            case kind:
                self.undone.append(f"{entry.draft.key} is of a kind that is not known here: {kind}")

    async def _give(self, entries: Sequence[JournalEntry]) -> None:
        """Out of suspense, by a person or a re-drive. Several parts at once can only be a re-drive's."""
        amount = sum(int(one.draft.detail["amount"]) for one in entries)
        waiting, exact = await self._waiting(entries[0], amount)
        if not waiting:
            return
        if len(entries) > 1 or exact is None:
            await self.scratch.redrive_anomaly((exact or waiting[0]).id, self.terms)
            return
        quote_id = str(entries[0].draft.detail["quote_id"])
        resolved = await self.scratch.resolve_anomaly(exact.id, _BY_HAND, self.terms, quote_id)
        if resolved.refusal is not None:
            self.undone.append(f"{amount} could not be given to {quote_id}: {resolved.refusal}")

    async def _waiting(self, entry: JournalEntry, amount: int) -> tuple[list[Anomaly], Anomaly | None]:
        """What waits of the same payment in the same asset, and that of it which is just so much."""
        signature, asset = str(entry.draft.detail["signature"]), entry.draft.postings[0].asset
        waiting = [
            one
            for one in await self.scratch.anomalies_of(signature)
            if one.resolved_at is None and one.receipt is not None and one.asset == asset
        ]
        if not waiting:
            self.undone.append(f"{amount} of {signature} do not wait in suspense, and cannot be given again")
        return waiting, next((one for one in waiting if one.amount == amount), None)

    async def _refund(self, entry: JournalEntry) -> None:
        detail = entry.draft.detail
        _, exact = await self._waiting(entry, entry.draft.postings[0].amount)
        new = NewRefund(
            id=str(detail["refund"]),
            anomaly_id="" if exact is None else exact.id,
            destination=str(detail["destination"]),
            note=_BY_HAND,
        )
        if await self.scratch.request_refund(new) is None:
            self.undone.append(f"the refund {new.id} could not be asked for again")

    async def _end_refund(self, entry: JournalEntry) -> None:
        """By the transaction that the ledger names: whether it took that amount, the chain has told again."""
        refund_id = str(entry.draft.detail["refund"])
        refund = await self.source.refund(refund_id)
        sent = () if refund is None else refund.signings
        last = next((one for one in sent if one.outcome is Outcome.FINAL), None)
        if last is not None:
            signed = Signed(last.raw, last.signature, last.last_valid_height)
            await self.scratch.keep_signing(refund_id, signed)
            if await self.scratch.end_signing(refund_id, last.signature, Outcome.FINAL) is not None:
                return
        self.undone.append(f"the refund {refund_id} has not left the treasury by the chain")

    async def _fail_refund(self, entry: JournalEntry) -> None:
        refund_id = str(entry.draft.detail["refund"])
        if await self.scratch.give_up_refund(refund_id, _BY_HAND) is None:
            self.undone.append(f"the refund {refund_id} could not fail again")
