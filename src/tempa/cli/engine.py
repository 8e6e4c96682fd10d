"""`tempa engine`: what can run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tempa.cli import connect
from tempa.cli.exits import UsageFault
from tempa.cli.output import Json, note, print_json, wants_json
from tempa.cli.table import print_table
from tempa.cli.up import Data, data_dir

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


@app.command("install")
def install_engine(
    name: Annotated[str, typer.Argument(help="The engine: triposplat.")],
    checkout: Annotated[Path, typer.Option(help="The folder of model.py and triposplat.py.")],
    weights: Annotated[
        Path | None, typer.Option(help="The folder of the weights; default: ckpts in it.")
    ] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="Run on the CPU: hours a picture, for trying.")] = False,
    index_url: Annotated[str | None, typer.Option(help="Where pip is to find torch and torchvision.")] = None,
    unpublished: Annotated[
        bool, typer.Option("--unpublished", help="Pin weights as they are, though other ones are published.")
    ] = False,
    save: Annotated[Path | None, typer.Option(help="Write the settings to this new file.")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make the environment of an engine that runs under an interpreter of its own."""
    from tempa.cli.engine_environment import Wish, install, toml

    if name != "triposplat":
        raise UsageFault(f"There is nothing to install for {name!r}; what needs an environment: triposplat.")
    if save is not None and save.exists():
        raise UsageFault(f"{save} is there already; its settings may be others. Give another name.")
    folder = data_dir(data) / "engines" / name
    device = "cpu" if cpu else "cuda"
    wish = Wish(
        checkout.resolve(), weights and weights.resolve(), device, index_url, folder, unpublished=unpublished
    )
    settings = install(wish)
    if save is not None:
        save.write_text(toml(settings), encoding="utf-8")
        note(f"Start the server with --config {save}, or put its lines into the one you have.")
    if wants_json(as_json):
        print_json({"engines": {name: settings}})
    elif save is None:
        note("Put these lines into the file that you start the server with (--config):")
        print(toml(settings), end="")


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
