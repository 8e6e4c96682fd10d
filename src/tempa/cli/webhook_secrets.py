"""The secrets that the commands on webhooks use: those given, else the local server's."""

from __future__ import annotations

from typing import Annotated

import typer

from tempa.cli import connect
from tempa.cli.exits import UsageFault

Secrets = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        envvar="TEMPA_WEBHOOK_SECRET",
        help="whsec_... or whpk_...; several while it rotates. (default: the local server's)",
    ),
]


def known_secrets(given: list[str] | None) -> list[str]:
    """Those given, or the local server's. Raises UsageFault if there are none."""
    secrets = given or [secret for secret in [connect.local_server().get("webhook_secret")] if secret]
    if not secrets:
        raise UsageFault("No secret is known: say --secret, or set TEMPA_WEBHOOK_SECRET.")
    return secrets
