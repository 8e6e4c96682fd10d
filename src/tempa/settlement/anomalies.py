"""What a person has to look at: money in suspense, calls that were forged, lookups that came to nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from tempa.settlement.reasons import is_again

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tempa.settlement.ingress import Rejected
    from tempa.settlement.model import Verdict

RAW_SHOWN_BYTES = 16 * 1024  # a page of whole calls would be hundreds of megabytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAnomaly:
    """One to be noted. The same `key` is the same anomaly: it is counted, and open again.

    - `reason`: a code of `reasons`, or what is wrong with a call.
    - `raw`: a sample of what came, if it is nowhere else.
    - `call_id`: the call that is kept with it, else.
    - `asset`, `account`, `amount`: of money: of which asset, in which account of the treasury, base units.
    - `receipt`: the number of the receipt whose money, or a part of it, waits here.
    - `times`: how often it happened since it was noted last.
    """

    key: str
    reason: str
    source: str | None = None
    signature: str | None = None
    detail: str = ""
    raw: bytes | None = None
    call_id: str | None = None
    asset: str | None = None
    account: str | None = None
    amount: int | None = None
    receipt: int | None = None
    quote_id: str | None = None
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One as it stands. `resolution` says what became of it.

    `raw` is what came, where it was kept: of all `raw_size_bytes` in a list only the first `RAW_SHOWN_BYTES`.
    """

    id: str
    key: str
    reason: str
    source: str | None
    signature: str | None
    detail: str
    raw: bytes | None
    raw_size_bytes: int | None
    asset: str | None
    account: str | None
    amount: int | None
    receipt: int | None
    quote_id: str | None
    count: int
    created_at: datetime
    seen_at: datetime  # the latest time
    resolved_at: datetime | None
    resolution: str | None


class Redriven(StrEnum):
    """What a re-drive came to."""

    UNKNOWN = "unknown"  # there is no such anomaly, or it is resolved
    REQUEUED = "requeued"  # the chain is asked again
    CREDITED = "credited"  # the money in suspense has found its quote
    WAITING = "waiting"  # it waits still: the anomaly says why


NO_SUCH_QUOTE = "no_reference"
"""Why money is not given by hand to a quote that is not known."""


class Resolved(NamedTuple):
    """A person's act. `anomaly` as it stands then, None: unknown; `refusal`: why the money was not given.

    `was_resolved`: somebody was quicker, and nothing was done.
    """

    anomaly: Anomaly | None
    refusal: str | None = None
    was_resolved: bool = False


def of_entry(call_id: str, source: str, rejected: Rejected) -> NewAnomaly:
    """An entry of a call that no signature could be taken from; what came is kept with the call."""
    return NewAnomaly(
        key=f"entry:{call_id}:{rejected.place}",
        reason="entry_unreadable",
        source=source,
        detail=f"{rejected.place}: {rejected.reason}",
        call_id=call_id,
    )


def of_strays(verdict: Verdict) -> Iterator[NewAnomaly]:
    """What came and is no receipt."""
    for stray in verdict.strays:
        yield NewAnomaly(
            key=stray_key(verdict.signature, stray.asset, stray.account),
            reason=stray.reason,
            signature=verdict.signature,
            asset=stray.asset,
            account=stray.account,
            amount=stray.amount,
            detail=f"slot {stray.slot}",
        )


def of_outcome(verdict: Verdict) -> Iterator[NewAnomaly]:
    """Why nothing came at all; and what left where something came: a payment must not hide a theft."""
    reason, signature = verdict.reason, verdict.signature
    assert reason is None or not is_again(reason), "only what is final is posted"
    if not (verdict.receipts or verdict.strays):
        assert reason is not None, "it says why there is no receipt"
        yield NewAnomaly(
            key=lookup_key(signature), reason=reason, signature=signature, detail=verdict.error or ""
        )
    elif left := [one for one in verdict.outflows if one.kind == "transfer"]:
        detail = "; ".join(f"{one.amount} of {one.asset} from {one.account}" for one in left)
        yield NewAnomaly(
            key=leaving_key(signature), reason="treasury_outflow", signature=signature, detail=detail
        )


def lookup_key(signature: str) -> str:
    """Of what a lookup came to, while nothing is credited."""
    return f"lookup:{signature}"


def stray_key(signature: str, asset: str, account: str) -> str:
    """Of money that is not credited at all."""
    return f"stray:{signature}:{asset}:{account}"


def leaving_key(signature: str) -> str:
    """Of money that left the treasury by a transaction that also brought some: no credit clears it."""
    return f"leaving:{signature}"


def suspense_key(receipt: int, quote_id: str | None) -> str:
    """Of a receipt's money, or the part of it that was meant for a quote, which waits in suspense."""
    return f"suspense:{receipt}:{quote_id or ''}"
