"""Why a refund is not signed though nothing is wrong with it in the ledger: by what the chain shows.

A ledger that was restored from a backup does not know what was sent after it: the memo in the history of the
treasury's account does. And who gives an address may have given that of a token account, or mistyped it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tempa.core import base58
from tempa.settlement.derive import is_on_curve
from tempa.settlement.ports import Trouble
from tempa.settlement.refund_order import memo_of
from tempa.settlement.transfers import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.settlement.ports import Chain
    from tempa.settlement.refunds import Refund

_PAGE = 1000


async def was_sent(refund: Refund, nodes: Sequence[Chain], needed: int) -> bool | None:
    """Whether a transaction of it has landed; None: fewer nodes than `needed` can tell.

    One that shows it is believed against all others.
    """
    answers = await asyncio.gather(*(_shows(node, refund) for node in nodes))
    if True in answers:
        return True
    return False if answers.count(False) >= needed else None


async def _shows(node: Chain, refund: Refund) -> bool | None:
    """Reads back to the payment itself: nothing was sent back before it. None: it cannot tell."""
    before: str | None = None
    while True:
        page = await node.signatures_for_address(refund.account, before=before, limit=_PAGE)
        if isinstance(page, Trouble):
            return None
        if any(not row.failed and memo_of(refund.id) in (row.memo or "") for row in page):
            return True
        if any(row.signature == refund.signature or row.slot < refund.slot for row in page):
            return False
        if not page:
            return None  # its history does not reach back to the payment, or it is behind
        before = page[-1].signature


async def is_wallet(address: str, nodes: Sequence[Chain], needed: int) -> bool | None:
    """Whether the system program owns it; None: fewer nodes than `needed` can tell.

    What was never used may be a wallet only if it can have a key.
    """
    states = await asyncio.gather(*(node.account(address) for node in nodes))
    told = [state.value for state in states if not isinstance(state, Trouble)]
    if len(told) < needed:
        return None
    return all(_may_be_wallet(address, value) for value in told)


def _may_be_wallet(address: str, value: Mapping[str, Any] | None) -> bool:
    if value is None:
        return is_on_curve(base58.decode(address))
    return value.get("owner") == SYSTEM and value.get("executable") is not True
