"""What `tempa doctor` says of payments: whether the nodes answer, and the treasury is in order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from tempa.cli.payments_nodes import EmptyLedger
from tempa.settlement.reasons import REASONS

if TYPE_CHECKING:
    from tempa.wiring.chain import Payments
    from tempa.wiring.settings import Settings

_SECONDS = 15.0


def look_at_payments(settings: Settings) -> tuple[Literal["ok", "warning", "fault"], str]:
    """Asks every node, and looks at each account and mint of the treasury."""
    if not settings.solana.is_configured:
        return "ok", "not configured (solana.treasury, solana.rpc_urls): nothing can be paid here"
    return asyncio.run(_look(settings))


async def _look(settings: Settings) -> tuple[Literal["ok", "warning", "fault"], str]:
    from tempa.wiring.chain import open_payments

    async with open_payments(settings, EmptyLedger()) as payments:
        assert payments is not None
        async with asyncio.timeout(_SECONDS):
            await payments.watch.look()
        return _finding(payments, settings)


def _finding(payments: Payments, settings: Settings) -> tuple[Literal["ok", "warning", "fault"], str]:
    out = [f"{node}: {REASONS[reason].words}" for node, reason in payments.quorum.excluded.items()]
    treasury = payments.watch.treasury
    if treasury is None:
        return "fault", "; ".join(out or [payments.watch.said])
    refused = [f"{row.asset}: {REASONS[row.refusal].words}" for row in treasury.accounts if row.refusal]
    if refused:
        return "fault", "; ".join(refused)
    lone = [] if len(payments.nodes) > 1 else ["one node alone is believed; name a second in solana.rpc_urls"]
    sources = [name for name in ("helius", "quicknode", "generic") if settings.payments.secrets_of(name)]
    unheard = not sources and not settings.solana.ws_url and not settings.solana.geyser_url
    deaf = ["only the sweep finds payments; set solana.ws_url or a payments.*.secret"] if unheard else []
    said = f"{len(treasury.accounts)} accounts of the treasury are in order"
    faults = [*out, *lone, *deaf]
    return ("warning", "; ".join([said, *faults])) if faults else ("ok", said)
