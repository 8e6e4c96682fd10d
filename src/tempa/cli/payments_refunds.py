"""`tempa payments refunds`: money that waits is sent back to whoever paid."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli import connect
from tempa.cli.exits import FAULT, UsageFault
from tempa.cli.output import Json, print_json, sent, wants_json
from tempa.cli.show import stamp
from tempa.cli.table import on_one_line, print_table

if TYPE_CHECKING:
    from tempa.client import Client
    from tempa.settlement.wire import AnomalyView, RefundView

app = typer.Typer(help="Send money that waits back to whoever paid. For the operator.", no_args_is_help=True)

RefundId = Annotated[str, typer.Argument(metavar="REFUND", help="ref_...: `tempa payments refunds ls`.")]


@app.command("ls")
def list_refunds(
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50, as_json: Json = False
) -> None:
    """List all of them, newest first."""
    with connect.open_client() as tempa:
        found = list(tempa.refunds(limit=limit))
    if wants_json(as_json):
        print_json({"items": [sent(each) for each in found]})
        return
    rows = [
        (each.id, each.state, stamp(each.requested_at), each.amount, each.asset, each.recipient)
        for each in found
    ]
    columns = ("refund", "state", "asked for", "base units", "asset", "to")
    print_table(columns, rows, "Nothing was sent back yet.")


@app.command("show")
def show_refund(refund: RefundId, as_json: Json = False) -> None:
    """Show how far one is, with the transactions that were signed for it."""
    with connect.open_client() as tempa:
        _print(tempa.refund(refund), as_json)


@app.command("ask")
def ask(
    anomaly: Annotated[
        str, typer.Argument(metavar="ANOMALY", help="Where the money waits: `tempa payments anomalies ls`.")
    ],
    recipient: Annotated[
        str | None,
        typer.Option("--to", metavar="WALLET", help="Who gets it. Without: who paid, after a question."),
    ] = None,
    note: Annotated[str | None, typer.Option(help="Who named the wallet, and why; stays on record.")] = None,
    as_json: Json = False,
) -> None:
    """Have all that waits in an anomaly sent back, once. It cannot be called back.

    Whoever paid should name the wallet. Where the payment came from is only a hint: an exchange pays from
    wallets of its own, and what goes back there is lost.
    """
    with connect.open_client() as tempa:
        wallet = recipient or _confirmed(tempa, anomaly)
        _print(tempa.ask_refund(wallet, anomaly_id=anomaly, note=note), as_json)


@app.command("give-up")
def give_up(
    refund: RefundId,
    reason: Annotated[str, typer.Option("--reason", help="Why; stays on record.")],
    as_json: Json = False,
) -> None:
    """Have its money wait again; only while no transaction of it may land."""
    with connect.open_client() as tempa:
        _print(tempa.give_up_refund(refund, reason), as_json)


def _confirmed(tempa: Client, anomaly_id: str) -> str:
    """The payer, if a person says so. Never without one."""
    anomaly = tempa.anomaly(anomaly_id)
    payer = _payer(tempa, anomaly)
    if payer is None:
        raise UsageFault("Nobody knows who paid. Name the wallet that gets the money: --to WALLET")
    if not sys.stdin.isatty():
        raise UsageFault(f"Name the wallet that gets the money: --to WALLET (it was paid from {payer})")
    question = (
        f"Send {anomaly.amount} base units of {anomaly.asset} to {payer}, where they came from?\n"
        "If that is an exchange's wallet, they are lost."
    )
    if not typer.confirm(question, default=False, err=True):
        raise typer.Exit(FAULT)
    return payer


def _payer(tempa: Client, anomaly: AnomalyView) -> str | None:
    if anomaly.signature is None:
        return None
    place = (anomaly.asset, anomaly.account)
    receipts = tempa.payment(anomaly.signature).receipts
    return next((one.payer for one in receipts if (one.asset, one.account) == place), None)


def _print(view: RefundView, as_json: bool) -> None:
    if wants_json(as_json):
        print_json(sent(view))
        return
    print(f"{view.id}  {view.state}: {on_one_line(view.message)}")
    facts = (
        ("amount", f"{view.amount} base units of {view.asset}"),
        ("to", view.recipient),
        ("payment", view.signature),
        ("anomaly", view.anomaly_id),
        ("asked for", stamp(view.requested_at)),
        ("note", view.note),
        ("failed", view.reason),
    )
    for name, value in facts:
        if value:
            print(f"  {name:9} {on_one_line(value)}")
    for one in view.transactions:
        state = one.outcome or ("sent" if one.sent_at else "signed")
        print(f"  {one.signature}  {state} {stamp(one.sent_at or one.signed_at)}")
