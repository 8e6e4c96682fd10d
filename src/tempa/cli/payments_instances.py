"""`tempa payments instances`: what is for rent, and at which prices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli import connect
from tempa.cli.exits import UsageFault
from tempa.cli.output import Json, print_json, sent, wants_json
from tempa.cli.show import stamp
from tempa.cli.table import on_one_line, print_table

if TYPE_CHECKING:
    from tempa.client.calls import PriceOfInstance
    from tempa.settlement.wire import GpuInstanceView

app = typer.Typer(help="GPU instances for rent.", no_args_is_help=True)

InstanceId = Annotated[
    str, typer.Argument(metavar="INSTANCE", help="gpu_...: `tempa payments instances ls`.")
]
Prices = Annotated[
    list[str],
    typer.Option(
        "--price",
        metavar="ASSET=AMOUNT/SECONDS",
        help="Base units for so many seconds; ASSET is SOL or a mint. Once for each asset.",
    ),
]


@app.command("ls")
def list_instances(
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None, as_json: Json = False
) -> None:
    """List them, oldest first, whoever rents them."""
    with connect.open_client() as tempa:
        found = list(tempa.gpu_instances(limit=limit))
    if wants_json(as_json):
        print_json({"items": [sent(each) for each in found]})
        return
    rows = [
        (each.id, each.name, each.status, stamp(each.current_expiry), each.renter, _prices(each))
        for each in found
    ]
    columns = ("instance", "name", "status", "rented until", "by", "prices (base units/seconds)")
    print_table(columns, rows, "There are no GPU instances. `tempa payments instances add NAME` offers one.")


@app.command("add")
def add_instance(
    name: Annotated[str, typer.Argument(metavar="NAME", help="For people.")],
    price: Prices,
    as_json: Json = False,
) -> None:
    """Offer one for rent. For the operator."""
    prices = _parsed(price)
    with connect.open_client() as tempa:
        _print(tempa.add_gpu_instance(name, prices), as_json)


@app.command("prices")
def change_prices(instance: InstanceId, price: Prices, as_json: Json = False) -> None:
    """Give one other prices: those that are not named here end. Open quotes keep theirs."""
    prices = _parsed(price)
    with connect.open_client() as tempa:
        _print(tempa.change_prices(instance, prices), as_json)


@app.command("suspend")
def suspend(instance: InstanceId, as_json: Json = False) -> None:
    """Let nobody use or quote one; its renter's time stands still."""
    with connect.open_client() as tempa:
        _print(tempa.suspend_gpu_instance(instance), as_json)


@app.command("resume")
def resume(instance: InstanceId, as_json: Json = False) -> None:
    """Let it be used again, with the time that was left."""
    with connect.open_client() as tempa:
        _print(tempa.resume_gpu_instance(instance), as_json)


def _print(view: GpuInstanceView, as_json: bool) -> None:
    if wants_json(as_json):
        print_json(sent(view))
        return
    print(f"{view.id}  {view.status}  {on_one_line(view.name)}")
    if view.renter:
        print(f"  rented by {on_one_line(view.renter)} until {stamp(view.current_expiry)}")
    for price in view.prices:
        print(f"  {price.amount} base units of {price.asset} for {price.seconds} s")


def _prices(view: GpuInstanceView) -> str:
    return ", ".join(f"{price.asset}={price.amount}/{price.seconds}" for price in view.prices)


def _parsed(given: list[str]) -> list[PriceOfInstance]:
    return [_price(text) for text in given]


def _price(text: str) -> PriceOfInstance:
    """What the server says to it is its own; here it only has to have the form."""
    asset, equals, rate = text.partition("=")
    amount, slash, seconds = rate.partition("/")
    if not (asset and equals and amount and slash and seconds.isdecimal()):
        raise UsageFault(f"A price is written ASSET=AMOUNT/SECONDS, as SOL=500000000/3600; this is {text!r}.")
    return {"asset": asset, "amount": amount, "seconds": int(seconds)}
