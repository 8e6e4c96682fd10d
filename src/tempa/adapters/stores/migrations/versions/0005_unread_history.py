"""The fifth schema: a sweep that was interrupted goes on where it was."""

from __future__ import annotations

from alembic import op

from tempa.adapters.stores.migrations.runner import run_script

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Forward only: there is no way back but a backup."""
    run_script(op, 5)
