"""`tempa accounts`: what each account may ask for. In the store itself, as `tempa keys`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempa.cli.exits import UsageFault
from tempa.cli.output import Json, print_json, wants_json
from tempa.cli.own_store import check_account_name, in_store, open_own
from tempa.cli.table import print_table
from tempa.cli.up import Config, Data

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tempa.core.accounts import Account

app = typer.Typer(
    help="Accounts and their limits, in the store itself: on SQLite with the server stopped.",
    no_args_is_help=True,
)

_DEFAULT = "default"  # the word that takes an account's own limit away
_DIGITS_MAX = 9
_WEIGHT_MAX = 1000


@app.command("ls")
def list_accounts(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """List accounts with their own limits, and the kernel seconds that each has used today (UTC)."""
    found = in_store(_list(data, config))
    if wants_json(as_json):
        print_json({"items": [_document(account, used) for account, used in found]})
        return
    rows = [(account.id, *_own_limits(account), f"{used:.1f}") for account, used in found]
    columns = ("account", *(name.replace("_", " ") for name in _READ), "compute seconds today")
    print_table(columns, rows, "There are no accounts.")


@app.command("set")
def set_account(
    name: Annotated[str, typer.Argument(help="The account; it need not be there yet.")],
    weight: Annotated[
        str | None, typer.Option(help="Its share of the workers while others wait too; 1 at first.")
    ] = None,
    running_max: Annotated[
        str | None,
        typer.Option(help="How many of its jobs may run; further ones wait. `default`: any number."),
    ] = None,
    queued_max: Annotated[
        str | None, typer.Option(help="How many of its jobs may wait or run; further ones are refused (429).")
    ] = None,
    requests_per_second: Annotated[
        str | None, typer.Option(help="How often it may call, for each process of the API; else 429.")
    ] = None,
    compute_seconds_per_day: Annotated[
        str | None,
        typer.Option(
            help="Kernel seconds a day (UTC), after which new jobs are refused (429) until midnight."
        ),
    ] = None,
    data: Data = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Set limits of an account; what is not named stays. `default` gives it the settings' limit again."""
    check_account_name(name)
    given = {
        "weight": weight,
        "running_max": running_max,
        "queued_max": queued_max,
        "requests_per_second": requests_per_second,
        "compute_seconds_per_day": compute_seconds_per_day,
    }
    changes = {limit: _READ[limit](limit, text) for limit, text in given.items() if text is not None}
    if not changes:
        raise UsageFault("Name at least one limit: `tempa accounts set --help` lists them.")
    account = in_store(_set(data, config, name, changes))
    if wants_json(as_json):
        print_json(_document(account))
    else:
        print_table(("limit", "value"), zip(_READ, _own_limits(account), strict=True), "")


def _weight(limit: str, text: str) -> float:
    value = _rate(limit, text)
    if value is not None and value > _WEIGHT_MAX:
        raise _fault(limit, f"must be at most {_WEIGHT_MAX}.")
    return 1.0 if value is None else value


def _whole(limit: str, text: str) -> int | None:
    if text == _DEFAULT:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX):
        raise _fault(limit, f"{text!r} is no whole number from 0 to 999999999, nor `{_DEFAULT}`.")
    return int(text)


def _rate(limit: str, text: str) -> float | None:
    from tempa.core.accounts import RATE_MIN

    value = _number(limit, text)
    if value is not None and value < RATE_MIN:
        raise _fault(limit, f"must be at least {RATE_MIN}. To shut an account out, revoke its keys.")
    return value


def _number(limit: str, text: str) -> float | None:
    if text == _DEFAULT:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise _fault(limit, f"{text!r} is no number from 0 on, nor `{_DEFAULT}`.")
    return value


def _fault(limit: str, what: str) -> UsageFault:
    return UsageFault(f"--{limit.replace('_', '-')}: {what}")


_READ: Mapping[str, Callable[[str, str], float | None]] = {
    "weight": _weight,
    "running_max": _whole,
    "queued_max": _whole,
    "requests_per_second": _rate,
    "compute_seconds_per_day": _number,
}


async def _list(data: Path | None, config: Path | None) -> Sequence[tuple[Account, float]]:
    async with open_own(data, config) as own:
        return await own.store.accounts()


async def _set(data: Path | None, config: Path | None, name: str, changes: dict[str, Any]) -> Account:
    async with open_own(data, config, make=True) as own:
        return await own.store.set_account(name, changes)


def _own_limits(account: Account) -> list[str]:
    return [_shown(getattr(account, name)) for name in _READ]


def _shown(value: float | None) -> str:
    return _DEFAULT if value is None else f"{value:.12g}"


def _document(account: Account, compute_seconds: float | None = None) -> dict[str, Any]:
    from tempa.core.clock import rfc3339

    used = {} if compute_seconds is None else {"compute_seconds_today": compute_seconds}
    limits = {name: getattr(account, name) for name in _READ}
    return {"id": account.id, "created_at": rfc3339(account.created_at), **limits, **used}
