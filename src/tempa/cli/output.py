"""Text for people, JSON for programs. Results go to stdout, everything said on the way to stderr."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel

_ASKED = "tempa.json"


def _remember(context: typer.Context, asked: bool) -> bool:
    """For whoever tells how the command ended, when the command itself is gone."""
    context.meta[_ASKED] = asked
    return asked


Json = Annotated[
    bool,
    typer.Option("--json", callback=_remember, help="JSON instead of text. Pipes get JSON anyway."),
]


def wants_json(flag: bool) -> bool:
    """Whether the reader is a program."""
    return flag or not _is_terminal()


def command_wants_json(context: typer.Context) -> bool:
    """The same, asked from outside of the command; one that knows no JSON never wants it."""
    return _ASKED in context.meta and wants_json(context.meta[_ASKED])


def sent(view: BaseModel, exclude: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """An answer as the API gave it: what was not in it is not made up. Times are `print_json`'s to write."""
    return view.model_dump(exclude=None if exclude is None else dict(exclude), exclude_unset=True)


def print_json(value: Any) -> None:
    """One JSON document; times as the API spells them, to the millisecond."""
    print(json.dumps(value, indent=2 if _is_terminal() else None, ensure_ascii=False, default=_spelled))


def print_json_line(value: Any) -> None:
    """One of many JSON documents, at once."""
    print(json.dumps(value, ensure_ascii=False, default=_spelled), flush=True)


def note(line: str) -> None:
    """Something a person wants to know meanwhile."""
    print(line, file=sys.stderr, flush=True)


def fill_streams() -> None:
    """Give the standard descriptors that who started us had closed a place to lead to.

    Else the next file or socket is number 1, and what writes there aborts the process or spoils it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - for the process's life
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


@contextmanager
def unread() -> Iterator[None]:
    """What is printed here need not arrive: nobody reads it, the disk is full, and we go on."""
    try:
        yield
        sys.stdout.flush()
    except OSError:
        # What is left in the buffer would fail again when the interpreter ends (exit code 120).
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _spelled(value: Any) -> str:
    from tempa.core.clock import rfc3339

    assert isinstance(value, datetime), "answers are plain JSON, but for their times"
    return rfc3339(value)


def _is_terminal() -> bool:
    return sys.stdout.isatty()
