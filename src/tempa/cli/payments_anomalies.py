"""`tempa payments anomalies`: what the operator has to look at, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli import connect
from tempa.cli.output import Json, print_json, sent, wants_json
from tempa.cli.show import stamp
from tempa.cli.table import on_one_line, print_table

if TYPE_CHECKING:
    from tempa.settlement.wire import AnomalyView

app = typer.Typer(help="Payments that wait for a person. For the operator.", no_args_is_help=True)

_EXCERPT_CHARACTERS = 400  # of the call that told of it; JSON has all of it

AnomalyId = Annotated[str, typer.Argument(metavar="ANOMALY", help="ano_...: `tempa payments anomalies ls`.")]


@app.command("ls")
def list_anomalies(
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50, as_json: Json = False
) -> None:
    """List those that are open, newest first."""
    with connect.open_client() as tempa:
        found = list(tempa.anomalies(limit=limit))
    if wants_json(as_json):
        print_json({"items": [sent(each) for each in found]})
        return
    rows = [
        (each.id, each.reason, each.count, stamp(each.seen_at), each.signature or each.account)
        for each in found
    ]
    columns = ("anomaly", "reason", "times", "latest", "transaction or account")
    print_table(columns, rows, "There are no anomalies.")
    for reason, words in {each.reason: each.message for each in found}.items():
        print(f"{reason}: {on_one_line(words)}")


@app.command("show")
def show_anomaly(anomaly: AnomalyId, as_json: Json = False) -> None:
    """Show one, with what to do, also when it is resolved. JSON has the whole call that told of it."""
    with connect.open_client() as tempa:
        _print(tempa.anomaly(anomaly), as_json)


@app.command("redrive")
def redrive(anomaly: AnomalyId, as_json: Json = False) -> None:
    """Try it again by the rules that hold now, after what was wrong has been put right."""
    with connect.open_client() as tempa:
        done = tempa.redrive_anomaly(anomaly)
    if wants_json(as_json):
        print_json(sent(done))
    else:
        print(f"{done.id}  {done.outcome}: {done.message}")


@app.command("resolve")
def resolve(
    anomaly: AnomalyId,
    resolution: Annotated[str, typer.Option("--reason", help="What was done about it; stays on record.")],
    quote: Annotated[
        str | None, typer.Option(metavar="QUOTE", help="Give the money that waits to this quote.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Close one for good."""
    with connect.open_client() as tempa:
        _print(tempa.resolve_anomaly(anomaly, resolution, quote_id=quote), as_json)


def _print(view: AnomalyView, as_json: bool) -> None:
    if wants_json(as_json):
        print_json(sent(view))
        return
    times = "" if view.count == 1 else f", {view.count} times"
    print(f"{view.id}  {view.reason}: {view.message}")
    print(f"  seen {stamp(view.created_at)}, last {stamp(view.seen_at)}{times}")
    facts = (
        ("transaction", view.signature),
        ("amount", view.amount and f"{view.amount} base units of {view.asset}"),
        ("account", view.account),
        ("quote", view.quote_id),
        ("from", view.source),
        ("found", view.error_trace),
        ("call", view.raw_payload and view.raw_payload[:_EXCERPT_CHARACTERS]),
    )
    for name, value in facts:
        if value:
            print(f"  {name:11} {on_one_line(value)}")
    if view.resolved_at is not None:
        print(f"  resolved {stamp(view.resolved_at)}: {on_one_line(view.resolution)}")
