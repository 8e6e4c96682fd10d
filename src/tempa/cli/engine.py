"""`tempa engine`: what can run."""

from __future__ import annotations

from typing import Any

import typer

from tempa.cli import connect
from tempa.cli.output import Json, note, print_json, wants_json
from tempa.cli.table import print_table

app = typer.Typer(help="Engines: what can run.", no_args_is_help=True)


@app.callback()
def engine() -> None:
    """Engines: what can run."""


@app.command("ls")
def list_engines(as_json: Json = False) -> None:
    """List the server's engines; without a server, those that are installed here."""
    engines = _engines()
    if wants_json(as_json):
        print_json({"items": engines})
        return
    rows = [
        (each.get("name"), each.get("version"), ", ".join(each.get("export_formats") or ()), each.get("lane"))
        for each in engines
    ]
    print_table(("engine", "version", "formats", "lane"), rows, "No engine is installed.")


def _engines() -> list[dict[str, Any]]:
    from tempa.client import NotReachable

    try:
        with connect.open_client(timeout_seconds=2.0) as tempa:
            return tempa.engines()
    except NotReachable as error:
        if error.status != 0:
            raise
        note("No server runs here; these are installed:")
        return _installed()


def _installed() -> list[dict[str, Any]]:
    from tempa.wiring.plugins import load_engines
    from tempa.wiring.settings import load_settings

    settings = load_settings()
    return [dict(engine.describe(settings.limits)) for engine in load_engines(settings.engines).values()]
