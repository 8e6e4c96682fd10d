"""A multipart/form-data body, taken apart as it streams in (RFC 7578)."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing
from dataclasses import dataclass

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from tempa.api.body import one_header
from tempa.core.errors import Problem, Refusal
from tempa.core.limits import KIB
from tempa.core.shapes import escape
from tempa.jobs.intake import invalid

FORM_BYTES = 64 * KIB  # what a form may have around its fields


def form_type(request: Request) -> str | None:
    """The `Content-Type` of a request whose body is a form; None: it is none."""
    content_type = one_header(request, "content-type") or ""
    is_form = content_type.partition(";")[0].strip().lower() == "multipart/form-data"
    return content_type if is_form else None


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form: its bytes are to be read before the next field is asked for."""

    name: str
    content: AsyncGenerator[bytes, None]


class _End:
    """A field's last byte was read."""


class Form:
    """Gives a form's fields one after the other, as far as their names are `known` and each is there once.

    Raises `Refusal` for a form that is anything else.
    """

    def __init__(self, content_type: str, known: Collection[str]) -> None:
        boundary = parse_options_header(content_type)[1].get(b"boundary")
        if not boundary:
            raise _malformed("The Content-Type of a form names its boundary.")
        self._known = known
        self._seen: set[str] = set()
        self._disposition = bytearray()
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._read: deque[str | bytes | _End] = deque()
        self._complete = False
        try:
            self._parser = self._make_parser(boundary)
        except FormParserError:
            raise _malformed("The form's boundary is too long.") from None

    def _make_parser(self, boundary: bytes) -> MultipartParser:
        return MultipartParser(
            boundary,
            {
                "on_part_begin": self._disposition.clear,
                "on_header_field": self._read_header_name,
                "on_header_value": self._read_header_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._begin_field,
                "on_part_data": self._read_bytes,
                "on_part_end": lambda: self._read.append(_End()),
                "on_end": self._end,
            },
        )

    async def fields(self, body: AsyncIterator[bytes]) -> AsyncGenerator[Field, None]:
        """The fields, in the form's order."""
        while (name := await self._next(body)) is not None:
            assert isinstance(name, str), "what was not read of a field was passed over"
            async with aclosing(self._content(body)) as content:
                yield Field(name, content)
                async for _ in content:
                    pass

    async def _content(self, body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        while isinstance(chunk := await self._next(body), bytes):
            yield chunk

    async def _next(self, body: AsyncIterator[bytes]) -> str | bytes | _End | None:
        """What comes next in the form; None at its end."""
        while not self._read:
            received = await anext(body, None)
            if received is None:
                if not self._complete:
                    raise _malformed("The form ends before its last boundary.")
                return None
            try:
                self._parser.write(received)
            except FormParserError:
                raise _malformed("The form could not be read.") from None
        return self._read.popleft()

    def _read_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _read_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition[:] = self._header_value
        self._header_name.clear()
        self._header_value.clear()

    def _begin_field(self) -> None:
        name = parse_options_header(bytes(self._disposition))[1].get(b"name", b"")
        text = name.decode("utf-8", errors="replace")
        pointer = "/" + escape(text[:80])
        if text not in self._known:
            names = ", ".join(sorted(self._known))
            raise invalid([Problem(pointer, f"This field is not known here; this form has {names}.")])
        if text in self._seen:
            raise invalid([Problem(pointer, "Send each field once.", 1)])
        self._seen.add(text)
        self._read.append(text)

    def _read_bytes(self, data: bytes, start: int, end: int) -> None:
        self._read.append(data[start:end])

    def _end(self) -> None:
        self._complete = True


def _malformed(message: str) -> Refusal:
    return invalid([Problem("", message)])
