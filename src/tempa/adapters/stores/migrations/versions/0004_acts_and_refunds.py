"""The fourth schema: prices of allocations, operators' acts, receipts in the chain's order, refunds."""

from __future__ import annotations

from alembic import op

from tempa.adapters.stores.migrations.runner import run_script

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Forward only: there is no way back but a backup."""
    run_script(op, 4)
