"""A transaction's own bytes: legacy, v0 (lookup tables) and v1 (first byte 129, signatures at the end).

Written by the formats of the Solana documentation ("Transactions", "Versioned transactions") and SIMD-0385.
What comes out has the shape of the encoding `json`, with data as bytes.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from tempa.core.base58 import ADDRESS_BYTES, SIGNATURE_BYTES, decode, encode

_SIZE_BYTES_MAX = 8192  # 1,232 before v1, 4,096 since
_BASE58_LETTERS_MAX = 2048
_V1 = 129
_VERSIONED = 0x80


class MalformedError(ValueError):
    """These are not a transaction's bytes."""


def read_wire(text: str, encoding: str) -> dict[str, Any]:
    """`signatures` and `message` of an encoded transaction. Raises `MalformedError`."""
    cursor = _Cursor(_bytes(text, encoding))
    if cursor.peek() == _V1:
        return _v1(cursor)
    signatures = [encode(cursor.take(SIGNATURE_BYTES)) for _ in range(cursor.length())]
    version = cursor.peek()
    if version & _VERSIONED and cursor.byte() != _VERSIONED:
        raise MalformedError("an unknown version")
    message = _message(cursor)
    if version & _VERSIONED:
        cursor.skip_lookups()
    cursor.end()
    return {"signatures": signatures, "message": message}


class _Cursor:
    """Reads on, and never beyond the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size_bytes: int) -> bytes:
        end = self._at + size_bytes
        if end > len(self._data):
            raise MalformedError("cut short")
        taken, self._at = self._data[self._at : end], end
        return taken

    def peek(self) -> int:
        byte = self.byte()
        self._at -= 1
        return byte

    def byte(self) -> int:
        return self.take(1)[0]

    def length(self) -> int:
        """compact-u16: seven bits a byte, the lowest first, at most three bytes."""
        value = 0
        for place in range(3):
            byte = self.byte()
            value |= (byte & 0x7F) << 7 * place
            if not byte & 0x80:
                return value
        raise MalformedError("a length of more than three bytes")

    def skip_lookups(self) -> None:
        """Which keys they stand for is in the answer's `loadedAddresses`."""
        for _ in range(self.length()):
            self.take(ADDRESS_BYTES)
            self.take(self.length())
            self.take(self.length())

    def end(self) -> None:
        if self._at != len(self._data):
            raise MalformedError("bytes are left over")


def _bytes(text: str, encoding: str) -> bytes:
    try:
        if encoding == "base58" and len(text) <= _BASE58_LETTERS_MAX:
            return decode(text)
        if encoding == "base64" and len(text) <= 2 * _SIZE_BYTES_MAX:
            return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise MalformedError("not " + encoding) from None
    raise MalformedError("an unknown encoding, or too much")


def _header(cursor: _Cursor) -> dict[str, int]:
    signers = cursor.byte()
    cursor.take(2)
    return {"numRequiredSignatures": signers}


def _keys(cursor: _Cursor, count: int) -> list[str]:
    return [encode(cursor.take(ADDRESS_BYTES)) for _ in range(count)]


def _message(cursor: _Cursor) -> dict[str, Any]:
    header = _header(cursor)
    keys = _keys(cursor, cursor.length())
    cursor.take(ADDRESS_BYTES)  # the recent block's hash
    instructions = []
    for _ in range(cursor.length()):
        program = cursor.byte()
        accounts = list(cursor.take(cursor.length()))
        data = cursor.take(cursor.length())
        instructions.append({"programIdIndex": program, "accounts": accounts, "data": data})
    return {"header": header, "accountKeys": keys, "instructions": instructions}


def _v1(cursor: _Cursor) -> dict[str, Any]:
    cursor.byte()
    header = _header(cursor)
    settings = int.from_bytes(cursor.take(4), "little").bit_count()
    cursor.take(ADDRESS_BYTES)  # the recent block's hash, or a nonce
    count = cursor.byte()
    keys = _keys(cursor, cursor.byte())
    cursor.take(4 * settings)
    shapes = [(cursor.byte(), cursor.byte(), int.from_bytes(cursor.take(2), "little")) for _ in range(count)]
    instructions = [
        {"programIdIndex": program, "accounts": list(cursor.take(accounts)), "data": cursor.take(size_bytes)}
        for program, accounts, size_bytes in shapes
    ]
    signatures = [encode(cursor.take(SIGNATURE_BYTES)) for _ in range(header["numRequiredSignatures"])]
    cursor.end()
    message = {"header": header, "accountKeys": keys, "instructions": instructions}
    return {"signatures": signatures, "message": message}
