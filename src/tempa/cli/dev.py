"""`tempa dev chain`, `tempa dev pay`: an offline Solana to develop and demonstrate against."""

from __future__ import annotations

import json
import os
import signal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempa.cli import connect
from tempa.cli.exits import FAULT, NOT_REACHABLE, CommandFault, UsageFault
from tempa.cli.output import Json, print_json, print_json_line, unread, wants_json
from tempa.cli.up import Config, ReadyFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.client import Client
    from tempa.testing.devchain.chain import DevChain

app = typer.Typer(name="dev", help="Develop and demonstrate without the real world.", no_args_is_help=True)

_NODES_MAX = 16


class Consensus(StrEnum):
    """Of `--mode`."""

    TOWER = "tower"
    ALPENGLOW = "alpenglow"


RpcPort = Annotated[int, typer.Option(min=0, max=65535, help="Of JSON-RPC; 0 picks a free one.")]
WsPort = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Of subscriptions. (default: one above --port)")
]
ControlPort = Annotated[int, typer.Option(min=0, max=65535, help="Of the control plane; 0 picks a free one.")]


@app.command("chain")
def chain(
    port: RpcPort = 8899,
    ws_port: WsPort = None,
    control_port: ControlPort = 8910,
    ready_file: ReadyFile = None,
    mode: Annotated[Consensus, typer.Option(help="Consensus.")] = Consensus.ALPENGLOW,
    slot_ms: Annotated[
        int, typer.Option(min=0, max=60_000, help="Milliseconds of a slot; 0: slots pass by POST /tick only.")
    ] = 200,
    nodes: Annotated[int, typer.Option(min=1, max=_NODES_MAX, help="RPC nodes, at /nodes/1 and so on.")] = 1,
    as_json: Json = False,
) -> None:
    """Run a Solana cluster of one process, until Ctrl-C or SIGTERM: real programs, no money, nothing kept.

    It starts with a treasury wallet, a mint of 6 decimals and a funded payer. Their keys are known to
    everybody: they are for development only.
    """
    import asyncio

    chosen_ws = ws_port if ws_port is not None else port and port + 1
    options = {"mode": mode.value, "slot_ms": slot_ms, "nodes": nodes}
    ports = {"port": port, "ws_port": chosen_ws, "control_port": control_port}
    asyncio.run(_run({**options, **ports}, ready_file, as_json=as_json))


@app.command("pay")
def pay(
    quote_id: Annotated[str, typer.Argument(metavar="QUOTE_ID", help="Of a quote that is open.")],
    rpc_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The chain. (default: the server's, else solana.rpc_urls here)"),
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Pay a quote on the development chain, from its funded wallet. On no other chain."""
    _require_solders()
    from tempa.testing.devchain.payments import PaymentFault, Rpc, pay_request

    with connect.open_client() as tempa:
        quote = tempa.quote(quote_id)
        where = rpc_url or _chain(tempa, config)
    try:
        signature = pay_request(Rpc(where), quote.solana_pay_url, quote.asset)
    except PaymentFault as fault:
        raise CommandFault(f"{fault}.", code=NOT_REACHABLE if fault.is_unreachable else FAULT) from fault
    if wants_json(as_json):
        print_json({"signature": signature})
    else:
        print(f"Paid: {signature}\nIt becomes time once it is final: tempa payments quotes show {quote_id}")


async def _run(options: Mapping[str, Any], ready_file: Path | None, *, as_json: bool) -> None:
    import asyncio

    made = _made(options)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with made as running:
        _announce(running, ready_file, as_json=as_json)
        await stopped.wait()


def _made(options: Mapping[str, Any]) -> DevChain:
    _require_solders()
    import time

    from tempa.testing.devchain.blocks import Mode
    from tempa.testing.devchain.chain import DevChain

    slot_ms = options["slot_ms"]
    told = {**options, "mode": Mode(options["mode"]), "slot_ms": slot_ms or 400}
    return DevChain(**told, ticking=bool(slot_ms), clock=time.time)


def _announce(running: DevChain, ready_file: Path | None, *, as_json: bool) -> None:
    ready = running.ready()
    if ready_file is not None:
        _put(ready_file, ready)
    with unread():
        if wants_json(as_json):
            print_json_line(ready)
            return
        for name, value in ready.items():
            print(f"{name.replace('_', ' '):12} {value}")
        print("Stop: Ctrl-C", flush=True)


def _put(path: Path, ready: Mapping[str, Any]) -> None:
    """In one step: whoever sees the file can use the chain."""
    passing = path.with_name(f".{path.name}.{os.getpid()}")
    passing.write_text(json.dumps(ready) + "\n", encoding="utf-8")
    passing.replace(path)


def _require_solders() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("solders", "websockets") if find_spec(name) is None]
    if missing:
        raise UsageFault(f"The development chain needs {' and '.join(missing)}: pip install 'tempa[solana]'.")


def _chain(tempa: Client, config: Path | None) -> str:
    """Where the chain is: by the server's settings, else by those of this machine."""
    return _server_chain(tempa) or _configured_chain(config)


def _server_chain(tempa: Client) -> str | None:
    """A node on the server's machine, the only kind that it names. None also where the key may not ask."""
    from tempa.client import NotAuthorized, TempaProblem

    try:
        nodes = tempa.treasury().nodes
    except NotAuthorized:
        return None
    except TempaProblem as problem:
        if problem.slug == "payments-not-configured":
            return None
        raise
    return next((node.rpc_url for node in nodes if node.rpc_url), None)


def _configured_chain(config: Path | None) -> str:
    from tempa.wiring.settings import load_settings

    urls = load_settings(config).solana.rpc_urls
    if not urls:
        raise UsageFault("No development chain is known here: give --rpc-url, or set solana.rpc_urls.")
    return urls[0]
