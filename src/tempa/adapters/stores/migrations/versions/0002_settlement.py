"""The second schema: payments, quotes, rentals and the ledger."""

from __future__ import annotations

from alembic import op

from tempa.adapters.stores.migrations.runner import run_script

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Forward only: there is no way back but a backup."""
    run_script(op, 2)
