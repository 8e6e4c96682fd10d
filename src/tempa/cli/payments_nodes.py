"""The chain's nodes for one command: as the settings name them, or the command line."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tempa.cli.exits import UsageFault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from tempa.settlement.anomalies import NewAnomaly
    from tempa.settlement.post import Recorded
    from tempa.wiring.chain import Payments


@asynccontextmanager
async def open_nodes(
    config: Path | None,
    rpc_urls: Sequence[str] | None = None,
    treasury: str | None = None,
    mints: Sequence[str] | None = None,
) -> AsyncIterator[Payments]:
    """Nodes, and a watch over the treasury that was not at work yet. What is None is taken from the settings.

    Raises UsageFault where neither tells which node, or which treasury; SettingsError.
    """
    from tempa.wiring.chain import open_payments
    from tempa.wiring.settings import load_settings

    given = {"rpc_urls": rpc_urls, "treasury": treasury, "mints": mints}
    flags: dict[str, Any] = {f"solana.{name}": value for name, value in given.items() if value}
    async with open_payments(load_settings(config, flags), EmptyLedger()) as payments:
        if payments is None:
            raise UsageFault(
                "Name the nodes and the treasury: --rpc-url, --treasury and --mint, or solana.rpc_urls,"
                " solana.treasury and solana.mints in the settings."
            )
        yield payments


class EmptyLedger:
    """For a watch that looks at the chain, not into the store, which a server may hold."""

    async def receipts(self, after: int, limit: int) -> list[Recorded]:  # noqa: ARG002
        """None."""
        return []

    async def note_anomaly(self, new: NewAnomaly) -> None:  # noqa: ARG002
        """Nobody is told."""
        return

    async def clear_anomaly(self, key: str, resolution: str) -> bool:  # noqa: ARG002
        """Nobody was."""
        return False
