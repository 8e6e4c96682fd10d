"""`tempa serve`, `tempa worker`: the roles of a server apart, in any number of processes on one store."""

from __future__ import annotations

from typing import Annotated

import typer

from tempa.cli.exits import UsageFault
from tempa.cli.output import Json
from tempa.cli.up import Config, Data, Host, Port, ReadyFile, run_process


def serve(
    roles: Annotated[
        str,
        typer.Option(
            metavar="ROLE,...", help="Of api, worker, deliverer, settler, rescuer, janitor. (default: all)"
        ),
    ] = "",
    host: Host = None,
    port: Port = None,
    data: Data = None,
    ready_file: ReadyFile = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Run some roles of a server, beside other processes on the same PostgreSQL and data directory.

    Without the api among them, --port serves /livez, /readyz and /metrics only.
    """
    chosen = _chosen(roles)
    flags = {"server.host": host, "server.port": port}
    listen = port is not None or chosen is None or "api" in chosen
    run_process(flags, chosen, data, ready_file, config, as_json, listen=listen)


def worker(
    slots: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Jobs at once. (default: one for each core)")
    ] = None,
    host: Host = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve /livez, /readyz and /metrics there. (default: not)"),
    ] = None,
    data: Data = None,
    ready_file: ReadyFile = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Run jobs, and nothing else: `serve --roles worker`."""
    flags = {"worker.slots": slots, "server.host": host, "server.port": port}
    run_process(flags, ("worker",), data, ready_file, config, as_json, listen=port is not None)


def _chosen(text: str) -> tuple[str, ...] | None:
    from tempa.wiring.roles import ALL_ROLES

    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in ALL_ROLES]
    if unknown:
        raise UsageFault(f"There is no role {', '.join(unknown)}. There are {', '.join(ALL_ROLES)}.")
    return names or None
