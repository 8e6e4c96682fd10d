"""The first schema: jobs, the event log, deliveries, keys."""

from __future__ import annotations

from alembic import op

from tempa.adapters.stores.migrations.runner import run_script

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Forward only: there is no way back but a backup."""
    run_script(op, 1)
