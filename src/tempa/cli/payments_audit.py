"""`tempa payments verify-statement`, `rebuild`: the ledger against the chain, line by line or whole."""

from __future__ import annotations

import csv
import io
import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempa.cli.exits import FAULT, UsageFault
from tempa.cli.output import Json, print_json, wants_json
from tempa.cli.up import Config, Data

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.settlement.rebuild import Rebuilt
    from tempa.settlement.statement import Report

_NO_CREDITS = "No credits: nothing to verify."
_SHOWN = 50  # of what is wrong, to people; JSON has more

RpcUrls = Annotated[
    list[str] | None,
    typer.Option(
        "--rpc-url", metavar="URL", help="A node. Several have to agree. (default: solana.rpc_urls)"
    ),
]
Treasury = Annotated[
    str | None, typer.Option(metavar="WALLET", help="Who has to have been paid. (default: solana.treasury)")
]
Mints = Annotated[
    list[str] | None,
    typer.Option("--mint", metavar="MINT", help="A token that is taken. (default: solana.mints)"),
]


class PostingOrder(StrEnum):
    """Of `--order`."""

    POSTED = "posted"
    CHAIN = "chain"


def verify_statement(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `tempa payments ledger` gave, JSON or CSV.")
    ],
    rpc_url: RpcUrls = None,
    treasury: Treasury = None,
    mint: Mints = None,
    part: Annotated[bool, typer.Option("--part", help="It begins in the middle of the ledger.")] = False,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Say whether the chain shows every credit of a statement. It asks no server. Exit code 1: it does not.

    What a statement leaves out it cannot show: that is for `rebuild`.
    """
    import asyncio

    from tempa.cli.payments_chain import verified

    report = asyncio.run(verified(_rows(file), rpc_url, treasury, mint, config, is_whole=not part))
    if wants_json(as_json):
        print_json(_report_document(report))
    else:
        print("\n".join(_report_lines(report)))
    if not report.holds:
        raise typer.Exit(FAULT)


def rebuild(
    order: Annotated[
        PostingOrder,
        typer.Option(help="Post as the journal did, or as the chain did: where its times are not believed."),
    ] = PostingOrder.POSTED,
    data: Data = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Build the ledger anew from chain, quotes and acts, and compare. Exit code 1: it differs.

    It changes nothing, and goes by the server's own settings. On SQLite the server has to be stopped.
    """
    import asyncio

    from tempa.cli.payments_chain import rebuilt

    found = asyncio.run(rebuilt(order.value, data, config))
    if wants_json(as_json):
        print_json(_rebuilt_document(found))
    else:
        print("\n".join(_rebuilt_lines(found)))
    if not found.is_identical:
        raise typer.Exit(FAULT)


def _rows(file: Path) -> Sequence[Mapping[str, Any]]:
    try:
        text = file.read_text(encoding="utf-8-sig")  # spreadsheets write a mark before it
    except (OSError, UnicodeDecodeError) as error:
        raise UsageFault(f"{file} cannot be read: {error}") from None
    if not text.lstrip().startswith(("{", "[")):
        return _csv_rows(file, text)
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageFault(f"{file} is not JSON: {error}") from None
    rows = told.get("items") if isinstance(told, dict) else told
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageFault(f"{file} is no statement: a list of credits, or an object with one in `items`.")
    return rows


def _csv_rows(file: Path, text: str) -> Sequence[Mapping[str, Any]]:
    """Without the ledger's columns it is no statement, and that nothing in it is wrong would mean nothing."""
    from tempa.settlement.views import LEDGER_COLUMNS

    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        columns, rows = reader.fieldnames or (), [*reader]
    except csv.Error as error:
        raise UsageFault(f"{file} is not CSV: {error}.") from None
    missing = [name for name in LEDGER_COLUMNS if name not in columns]
    if missing:
        raise UsageFault(f"{file} is no statement: its first line lacks {', '.join(missing)}.")
    return rows


def _report_lines(report: Report) -> list[str]:
    if not report.lines:
        return [_NO_CREDITS]
    verdict = "The chain shows all of it." if report.holds else "The chain does NOT show all of it:"
    lines = [f"{verdict} {report.lines} credits of {report.transactions} transactions."]
    lines += [
        f"  {account}: {amount} base units of {asset}" for (account, asset), amount in report.sums.items()
    ]
    lines += [f"  {account}: {seconds} s" for account, seconds in report.seconds.items()]
    lines += [f"  line {one.place}: {one.words} ({one.signature})" for one in report.differences[:_SHOWN]]
    if report.difference_count > _SHOWN:
        lines.append(f"  ... and {report.difference_count - _SHOWN} more")
    return lines + [f"  not checked: {name}: {why}" for name, why in report.unchecked.items()]


def _report_document(report: Report) -> dict[str, Any]:
    sums = [
        {"account": account, "asset": asset, "amount": str(amount)}
        for (account, asset), amount in report.sums.items()
    ]
    empty = {} if report.lines else {"note": _NO_CREDITS}
    return {
        "holds": report.holds,
        **empty,
        "lines": report.lines,
        "transactions": report.transactions,
        "sums": sums,
        "seconds": dict(report.seconds),
        "differences": [one._asdict() for one in report.differences],
        "difference_count": report.difference_count,
        "unchecked": dict(report.unchecked),
    }


def _rebuilt_lines(rebuilt: Rebuilt) -> list[str]:
    found = rebuilt.comparison
    same = "The ledger is what chain, quotes and acts make of it."
    lines = [same if rebuilt.is_identical else "The ledger is NOT what chain, quotes and acts make of it:"]
    lines.append(f"  {found.receipts} receipts of {rebuilt.transactions} transactions, {found.quotes} quotes")
    lines.append(f"  root of all receipts: {found.root}")
    if found.other_root != found.root:
        lines.append(f"  built anew: {found.other_root}")
    lines += [f"  {one.what} {one.key}: {one.words}" for one in found.differences[:_SHOWN]]
    if found.difference_count > _SHOWN:
        lines.append(f"  ... and {found.difference_count - _SHOWN} more")
    lines += [f"  not checked: {signature}: {why}" for signature, why in rebuilt.unchecked.items()]
    return lines + [f"  not done again: {words}" for words in rebuilt.undone]


def _rebuilt_document(rebuilt: Rebuilt) -> dict[str, Any]:
    found = rebuilt.comparison
    return {
        "identical": rebuilt.is_identical,
        "transactions": rebuilt.transactions,
        "receipts": found.receipts,
        "quotes": found.quotes,
        "root": found.root,
        "rebuilt_root": found.other_root,
        "differences": [one._asdict() for one in found.differences],
        "difference_count": found.difference_count,
        "unchecked": dict(rebuilt.unchecked),
        "undone": list(rebuilt.undone),
    }
