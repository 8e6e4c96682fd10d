"""A file in a multipart/form-data body, taken out as it streams in (RFC 7578)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from tempa.core.errors import Problem, Refusal
from tempa.core.shapes import escape
from tempa.jobs.intake import invalid

_FIELD = b"file"


class FileForm:
    """Gives the bytes of the one field `file`. Raises `Refusal` for a form that is anything else."""

    def __init__(self, content_type: str) -> None:
        boundary = parse_options_header(content_type)[1].get(b"boundary")
        if not boundary:
            raise _malformed("The Content-Type of a form names its boundary.")
        self._disposition = bytearray()
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._bytes: list[bytes] = []
        self._files = 0
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
                "on_end": self._end,
            },
        )

    async def file(self, body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """The file's bytes."""
        async for received in body:
            try:
                self._parser.write(received)
            except FormParserError:
                raise _malformed("The form could not be read.") from None
            for chunk in self._bytes:
                yield chunk
            self._bytes.clear()
        if not self._complete:
            raise _malformed("The form ends before its last boundary.")
        if not self._files:
            raise invalid([Problem("/file", "The form has no field file.")])

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
        if name != _FIELD:
            shown = name.decode("utf-8", errors="replace")[:80]
            raise invalid(
                [Problem("/" + escape(shown), "This field is not known here; a form has one field, file.")]
            )
        self._files += 1
        if self._files > 1:
            raise invalid([Problem("/file", "Send one file at a time.", 1)])

    def _read_bytes(self, data: bytes, start: int, end: int) -> None:
        self._bytes.append(data[start:end])

    def _end(self) -> None:
        self._complete = True


def _malformed(message: str) -> Refusal:
    return invalid([Problem("", message)])
