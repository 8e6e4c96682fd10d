"""The third schema: jobs know the GPU instance they are bound to."""

from __future__ import annotations

from alembic import op

from tempa.adapters.stores.migrations.runner import run_script

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Forward only: there is no way back but a backup."""
    run_script(op, 3)
