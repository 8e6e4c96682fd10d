"""Text for people, JSON for programs. Results go to stdout, everything said on the way to stderr."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Json = Annotated[bool, typer.Option("--json", help="JSON instead of text. Pipes get JSON anyway.")]


def wants_json(flag: bool) -> bool:
    """Whether the reader is a program."""
    return flag or not _is_terminal()


def print_json(value: Any) -> None:
    """One JSON document."""
    print(json.dumps(value, indent=2 if _is_terminal() else None, ensure_ascii=False))


def print_json_line(value: Any) -> None:
    """One of many JSON documents, at once."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], empty: str) -> None:
    """A table; `empty` if it has no rows."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=box.SIMPLE, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))  # Text: no markup out of data
    Console().print(table if table.row_count else empty, soft_wrap=not table.row_count)


def note(line: str) -> None:
    """Something a person wants to know meanwhile."""
    print(line, file=sys.stderr, flush=True)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
