"""`tempa payments`: rent GPUs, pay for them, and see what became of the money."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli import (
    connect,
    payments_anomalies,
    payments_audit,
    payments_instances,
    payments_proofs,
    payments_quotes,
    payments_refunds,
)
from tempa.cli.output import Json, print_json, sent, wants_json
from tempa.cli.show import stamp
from tempa.cli.table import on_one_line, print_table

if TYPE_CHECKING:
    from tempa.settlement.wire import PaymentView, TreasuryView

app = typer.Typer(help="Rent GPUs, pay for them, and see what became of the money.", no_args_is_help=True)
app.command("quote")(payments_quotes.quote)
app.add_typer(payments_quotes.app, name="quotes")
app.add_typer(payments_instances.app, name="instances")
app.command("proof")(payments_proofs.proof)
app.command("verify-proof")(payments_proofs.verify_proof)
app.command("verify-statement")(payments_audit.verify_statement)
app.command("rebuild")(payments_audit.rebuild)
app.add_typer(payments_anomalies.app, name="anomalies")
app.add_typer(payments_refunds.app, name="refunds")


class LedgerFormat(StrEnum):
    """Of `--format`."""

    CSV = "csv"
    JSON = "json"


@app.command("show")
def show(
    signature: Annotated[str, typer.Argument(metavar="SIGNATURE", help="The transaction that paid.")],
    as_json: Json = False,
) -> None:
    """Show what became of a payment, and what happens next."""
    with connect.open_client() as tempa:
        _print_payment(tempa.payment(signature), as_json)


@app.command("ledger")
def ledger(
    form: Annotated[
        LedgerFormat | None,
        typer.Option("--format", help="csv: all of it. (default: text, or JSON in pipes)"),
    ] = None,
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="For the operator: another account's, or * for all.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many; csv has all.")] = None,
    as_json: Json = False,
) -> None:
    """List what was credited, oldest first."""
    with connect.open_client() as tempa:
        if form is LedgerFormat.CSV:
            sys.stdout.write(tempa.ledger_csv(account=account).decode("utf-8"))
            return
        lines = list(tempa.ledger(limit=limit, account=account))
    if form is LedgerFormat.JSON or wants_json(as_json):
        print_json({"items": [sent(line) for line in lines]})
        return
    rows = [
        (
            stamp(line.created_at),
            line.account,
            line.rent_seconds_added,
            line.amount,
            line.asset,
            line.gpu_instance_id,
            line.tx_signature,
        )
        for line in lines
    ]
    columns = ("credited", "account", "seconds", "base units", "asset", "instance", "transaction")
    print_table(columns, rows, "Nothing was credited yet.")


@app.command("treasury")
def treasury(as_json: Json = False) -> None:
    """Show whether payments are credited now, to which accounts, and which nodes tell of them."""
    with connect.open_client() as tempa:
        _print_treasury(tempa.treasury(), as_json)


def _print_payment(view: PaymentView, as_json: bool) -> None:
    if wants_json(as_json):
        print_json(sent(view))
        return
    print(f"{view.signature}  {view.status}" + (f" ({view.reason})" if view.reason else ""))
    for words in (view.message, view.what_next):
        if words:
            print(f"  {on_one_line(words)}")
    for receipt in view.receipts:
        print(f"  {receipt.amount} base units of {receipt.asset} came in slot {receipt.slot}")
        for part in receipt.allocations:
            until = stamp(part.current_expiry)
            print(f"    {part.amount} bought {part.seconds} s for {part.quote_id}, until {until}")
        if receipt.waiting != "0":
            print(f"    {receipt.waiting} wait for a person")
    for heard in view.heard:
        print(f"  heard from {heard.source} {stamp(heard.received_at)}: {heard.state}")
    for anomaly in view.anomalies:
        print(f"  {anomaly.id}  {anomaly.reason}")


def _print_treasury(view: TreasuryView, as_json: bool) -> None:
    if wants_json(as_json):
        print_json(sent(view))
        return
    print(on_one_line(view.message))
    print(f"  wallet   {view.wallet}\n  cluster  {view.cluster or '(not known yet)'}")
    accounts = [(row.asset, row.address, row.decimals, row.message or "credited") for row in view.accounts]
    print_table(("asset", "account", "decimals", "what comes is"), accounts, "  No account is known yet.")
    nodes = [
        (node.name, "" if node.slot is None else node.slot, node.message or "asked") for node in view.nodes
    ]
    print_table(("node", "slot", "state"), nodes, "")
