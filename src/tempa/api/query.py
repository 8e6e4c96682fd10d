"""Reading query parameters: all of them, then all that is wrong with them at once."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from fastapi import Request

from tempa.core.errors import Problem
from tempa.core.ids import is_id
from tempa.core.shapes import escape
from tempa.jobs.intake import invalid

PAGE_DEFAULT = 50
TEXT_PATTERN = r"^[^\x00-\x1f\x7f]{1,256}$"
PAIR_PATTERN = r"^[^\x00-\x1f\x7f]{1,128}:[^\x00-\x1f\x7f]{0,512}$"
CURSOR_PATTERN = r"^[A-Za-z0-9_-]{4,80}$"

_Value = TypeVar("_Value")

_WHOLE = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,3})?")
_TEXT = re.compile(TEXT_PATTERN)
_PAIR = re.compile(PAIR_PATTERN)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)
_CURSOR = re.compile(CURSOR_PATTERN)


class Query:
    """The query of one request. A problem's pointer names the parameter: `/limit`.

    A reader gives None for a parameter that is absent or wrong; `check` then raises `Refusal` with
    all that is wrong. A parameter that no reader has asked for and is not in `others` is wrong too:
    a filter with a slip in its name would seem to match everything.
    """

    def __init__(self, request: Request, *others: str) -> None:
        self._given = request.query_params
        self._known = list(others)
        self._problems: list[Problem] = []

    def whole(self, name: str, low: int, high: int) -> int | None:
        """A whole number from `low` to `high`."""
        message = f"Must be a whole number from {low} to {high}."
        return self._read(name, partial(_whole, low=low, high=high), message, high)

    def seconds(self, name: str, high: float) -> float | None:
        """A time from 0 to `high` seconds."""
        message = f"Must be a number of seconds from 0 to {high}, such as 10 or 2.5."
        return self._read(name, partial(_seconds, high=high), message, high)

    def choice(self, name: str, choices: Collection[str]) -> str | None:
        """One of `choices`."""
        message = "Must be one of " + ", ".join(choices) + "."
        return self._read(name, lambda text: text if text in choices else None, message)

    def text(self, name: str) -> str | None:
        """Printable text of up to 256 characters."""
        message = "Must be 1 to 256 characters, none of them control characters."
        return self._read(name, lambda text: text if _TEXT.fullmatch(text) else None, message, 256)

    def pair(self, name: str) -> str | None:
        """`name:value`, as it was given: both may hold further colons, the value may be empty."""
        return self._read(name, lambda text: text if _PAIR.fullmatch(text) else None, "Must be name:value.")

    def time(self, name: str) -> datetime | None:
        """An RFC 3339 time with its zone, as UTC."""
        message = "Must be an RFC 3339 time with a zone, such as 2026-11-30T12:00:00Z (a + in it is %2B)."
        return self._read(name, _time, message)

    def limit(self, high: int) -> int:
        """How many items a page may have."""
        return self.whole("limit", 1, high) or min(PAGE_DEFAULT, high)

    def cursor(self) -> str | None:
        """The id that the page before ended with."""
        return self._read("cursor", _read_cursor, "Must be the next_cursor of an earlier page.")

    def place(self) -> int:
        """The number that the page before ended with, of a list that has no ids; 0 at its beginning."""
        return self._read("cursor", _read_place, "Must be the next_cursor of an earlier page.") or 0

    def check(self) -> None:
        """Raise `Refusal` if anything was wrong."""
        message = f"This parameter is not known here. Known: {', '.join(self._known)}."
        for name in self._given:
            if name not in self._known:
                self._problems.append(Problem("/" + escape(name[:80]), message))
        if self._problems:
            raise invalid(self._problems)

    def _read(
        self, name: str, read: Callable[[str], _Value | None], message: str, limit: float | None = None
    ) -> _Value | None:
        self._known.append(name)
        values = self._given.getlist(name)
        if not values:
            return None
        value = read(values[0]) if len(values) == 1 else None
        if value is None:
            why = message if len(values) == 1 else "Must be given once."
            self._problems.append(Problem(f"/{name}", why, limit))
        return value


def page(views: Sequence[Any], ids: Sequence[str], limit: int) -> dict[str, Any]:
    """A list's answer. Of `limit + 1` items that were asked for, the last tells only that there are more."""
    more = len(views) > limit
    return {"items": list(views[:limit]), "next_cursor": _write_cursor(ids[limit - 1]) if more else None}


def _whole(text: str, low: int, high: int) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) and low <= int(text) <= high else None


def _seconds(text: str, high: float) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) and float(text) <= high else None


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC) if _TIME.fullmatch(text) else None
    except (ValueError, OverflowError):  # the 30th of February; the year 0
        return None


def place_text(number: int) -> str:
    """A number as `page` takes it for an id."""
    return f"{number:018d}"


def _write_cursor(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode().rstrip("=")


def _read_cursor(text: str) -> str | None:
    """Whatever decodes to something else than an id was not written by us."""
    last = _decoded(text)
    return last if is_id(last) else None


def _read_place(text: str) -> int | None:
    last = _decoded(text)
    return int(last) if len(last) == 18 and _WHOLE.fullmatch(last) else None


def _decoded(text: str) -> str:
    try:
        padded = text + "=" * (-len(text) % 4)
        return base64.urlsafe_b64decode(padded).decode("ascii") if _CURSOR.fullmatch(text) else ""
    except ValueError:
        return ""
