"""`tempa payments quote` and `quotes`: what time costs, how it is paid, and how far the payment is."""

from __future__ import annotations

import io
import shutil
import time
from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli import connect
from tempa.cli.exits import FAULT, INTERRUPTED, UsageFault
from tempa.cli.output import Json, note, print_json, sent, wants_json
from tempa.cli.show import stamp
from tempa.cli.table import on_one_line, print_table
from tempa.cli.units import in_user_units

if TYPE_CHECKING:
    from tempa.client import Client
    from tempa.settlement.wire import QuoteView

app = typer.Typer(help="The account's quotes.", no_args_is_help=True)

_LOOK_SECONDS = 1.0
_PAID = ("credited", "late")
_OVER = (*_PAID, "suspense", "expired")

QuoteId = Annotated[str, typer.Argument(metavar="QUOTE", help="quo_...: `tempa payments quotes ls`.")]
Wait = Annotated[
    bool, typer.Option("--wait", help="Until it is paid, or cannot be any more. Exit code 1: it was not.")
]


def quote(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="gpu_...: what to rent.")],
    seconds: Annotated[int, typer.Option(min=1, help="For how long.")],
    asset: Annotated[
        str | None, typer.Option(help="SOL or a mint. (default: that of the instance's first price)")
    ] = None,
    wait: Wait = False,
    qr: Annotated[bool, typer.Option(help="Draw the code that a wallet scans.")] = True,
    as_json: Json = False,
) -> None:
    """Ask what so many seconds cost: the amount, the Solana Pay URL and its QR code. It binds nobody."""
    with connect.open_client() as tempa:
        made = tempa.ask_quote(instance, asset or _first_asset(tempa, instance), seconds)
        if not wants_json(as_json):
            _print_offer(made, draws=qr)
        elif wait:
            note(f"Pay {made.solana_pay_url}")
        else:
            print_json(sent(made))
        if wait:
            _finish(_wait(tempa, made), as_json)


@app.command("ls")
def list_quotes(
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50, as_json: Json = False
) -> None:
    """List them, newest first."""
    with connect.open_client() as tempa:
        found = list(tempa.quotes(limit=limit))
    if wants_json(as_json):
        print_json({"items": [sent(each) for each in found]})
        return
    rows = [
        (
            each.quote_id,
            each.status,
            each.seconds,
            _amount(each),
            stamp(each.created_at),
            each.gpu_instance_id,
        )
        for each in found
    ]
    columns = ("quote", "status", "seconds", "amount", "made", "instance")
    print_table(columns, rows, "There are no quotes. `tempa payments quote INSTANCE` asks for one.")


@app.command("show")
def show_quote(
    quote_id: QuoteId,
    wait: Wait = False,
    qr: Annotated[bool, typer.Option("--qr", help="Draw the code that a wallet scans.")] = False,
    as_json: Json = False,
) -> None:
    """Show one, and how far its payment is."""
    with connect.open_client() as tempa:
        found = tempa.quote(quote_id)
        if qr and not wants_json(as_json):
            _draw(found.solana_pay_url)
        if wait:
            _finish(_wait(tempa, found), as_json)
        else:
            _print(found, as_json)


def _first_asset(tempa: Client, instance: str) -> str:
    prices = tempa.gpu_instance(instance).prices
    if not prices:
        raise UsageFault(f"{instance} has no price.")
    return prices[0].asset


def _wait(tempa: Client, found: QuoteView) -> QuoteView:
    """The quote once it is over. What happens meanwhile is told as it happens."""
    told = ""
    try:
        while found.status not in _OVER:
            if found.status != told:
                note(f"{found.status}: {found.message}")
                told = found.status
            time.sleep(_LOOK_SECONDS)
            found = tempa.quote(found.quote_id)
    except KeyboardInterrupt:
        again = f"tempa payments quotes show {found.quote_id} --wait"
        note(f"\nThe quote stands until {stamp(found.expires_at)}. Wait for it again: {again}")
        raise typer.Exit(INTERRUPTED) from None
    return found


def _finish(found: QuoteView, as_json: bool) -> None:
    _print(found, as_json)
    if found.status not in _PAID:
        raise typer.Exit(FAULT)


def _print_offer(made: QuoteView, *, draws: bool) -> None:
    print(f"{made.quote_id}  {_amount(made)} for {made.seconds} s, until {stamp(made.expires_at)}")
    print(f"  to {made.treasury}, with reference {made.reference}")
    print(made.solana_pay_url)
    if draws:
        _draw(made.solana_pay_url)


def _print(found: QuoteView, as_json: bool) -> None:
    if wants_json(as_json):
        print_json(sent(found))
        return
    print(f"{found.quote_id}  {found.status}: {on_one_line(found.message)}")
    print(f"  {_amount(found)} for {found.seconds} s of {found.gpu_instance_id}")
    print(f"  price locked until {stamp(found.expires_at)}")
    for name, step in (("seen", found.seen), ("final", found.final), ("credited", found.credited)):
        if step is not None:
            print(f"  {name:8} {stamp(step.at)}" + (f", slot {step.slot}" if step.slot is not None else ""))
    if found.signature:
        paid = in_user_units(found.paid, found.decimals)
        print(f"  {paid} came and bought {found.granted_seconds} s, by {found.signature}")


def _amount(found: QuoteView) -> str:
    return f"{in_user_units(found.amount, found.decimals)} {found.asset}"


def _draw(url: str) -> None:
    """In half blocks, light on dark as terminals are; not where it would not fit."""
    import segno

    code = segno.make_qr(url, error="l")
    width_cells = code.symbol_size()[0]
    if width_cells > shutil.get_terminal_size().columns:
        note(f"The QR code needs a terminal of {width_cells} columns.")
        return
    drawn = io.StringIO()
    code.terminal(drawn, compact=True)
    print(drawn.getvalue())
