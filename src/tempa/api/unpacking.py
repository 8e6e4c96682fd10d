"""A body that may be packed, unpacked as it streams in: within the limit, however much it would become."""

from __future__ import annotations

import zlib
from contextlib import aclosing

from fastapi import Request

from tempa.api.body import refuse_announced, too_large
from tempa.core.errors import Refusal
from tempa.settlement.samples import SAMPLE_BYTES

# RFC 9110 section 8.4.1: `deflate` is zlib's format, whatever its name says.
_WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class Unpacker:
    """One body. `head` is how it began, as it came, for whoever has to find out what it was.

    Raises `Refusal`: `unsupported-media-type` for any other encoding than gzip and deflate, `body-too-large`,
    `unreadable-json` for what cannot be unpacked.
    """

    def __init__(self, encoding: str, size_bytes_max: int) -> None:
        self.head = bytearray()
        self._body = bytearray()
        self._size_bytes_max = size_bytes_max
        self._received_bytes = 0
        coding = encoding.strip().lower()
        if coding not in {"", "identity", *_WINDOW_BITS}:
            raise _unsupported()
        bits = _WINDOW_BITS.get(coding)
        self._inflate = None if bits is None else zlib.decompressobj(bits)

    def take(self, chunk: bytes) -> None:
        """The next bytes of it, as they came."""
        self._received_bytes += len(chunk)
        self.head += chunk[: SAMPLE_BYTES - len(self.head)]
        if self._received_bytes > self._size_bytes_max:
            raise too_large(self._size_bytes_max)
        self._body += chunk if self._inflate is None else self._inflated(chunk)
        if len(self._body) > self._size_bytes_max:
            raise too_large(self._size_bytes_max)

    def end(self) -> bytes:
        """All of it, unpacked."""
        if self._inflate is not None and not self._inflate.eof:
            raise _unreadable("it ends early")
        return bytes(self._body)

    def _inflated(self, chunk: bytes) -> bytes:
        """One byte more than may be, at most: a bomb is known by it, and never goes off."""
        assert self._inflate is not None, "it is packed"
        room = self._size_bytes_max + 1 - len(self._body)
        try:
            unpacked = self._inflate.decompress(chunk, room)
        except zlib.error:
            raise _unreadable("it is damaged, or packed in another way") from None
        if self._inflate.unused_data:
            raise _unreadable("there is more behind its end")
        return unpacked


async def unpack(request: Request, unpacker: Unpacker, size_bytes_max: int) -> bytes:
    """The body of a request. Raises `Refusal` as `Unpacker` does, as soon as it is known."""
    refuse_announced(request, size_bytes_max)
    async with aclosing(request.stream()) as chunks:
        async for chunk in chunks:
            unpacker.take(chunk)
    return unpacker.end()


def _unsupported() -> Refusal:
    detail = "Send the body without Content-Encoding, or as gzip or deflate."
    return Refusal("unsupported-media-type", detail, headers={"Accept-Encoding": "gzip, deflate"})


def _unreadable(why: str) -> Refusal:
    return Refusal("unreadable-json", f"The body could not be unpacked as its Content-Encoding says: {why}.")
