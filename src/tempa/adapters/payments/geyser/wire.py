"""The few messages of `geyser.proto`, as bytes and back.

Written by hand: two requests and five answers do not pay for a code generator and its runtime, which the
operator's own packages may want in another version. Source: Protocol Buffers documentation, "Encoding".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tempa.core import base58

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

SUBSCRIBE: Final = "/geyser.Geyser/Subscribe"
COMMITMENTS: Final = {"processed": 0, "confirmed": 1, "finalized": 2}
SLOT_FINALIZED: Final = 2

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
_VARINT_BYTES_MAX = 10
_U64_MASK = 2**64 - 1
_FILTER = b"tempa"  # the name of our filters, which comes back with each update


class MalformedError(ValueError):
    """Bytes that are no message."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot came further. `status` as in the file; `parent` None where it is not told."""

    slot: int
    parent: int | None
    status: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction that a filter let through. `signature` in base58."""

    signature: str
    slot: int


@dataclass(frozen=True, slots=True)
class Ping:
    """The server wants to hear that somebody listens."""


Update = Slot | Transaction | Ping


def subscription(addresses: Sequence[str], commitment: str, from_slot: int | None) -> bytes:
    """Every step of every slot, and the status of each transaction that names one of the addresses."""
    slots = _number(1, 0)
    transactions = _number(1, 0) + b"".join(_field(3, address.encode()) for address in addresses)
    request = _entry(2, slots) + _number(6, COMMITMENTS[commitment]) + _entry(10, transactions)
    return request if from_slot is None else request + _number(11, from_slot)


def answer_to_ping() -> bytes:
    """The request that answers a ping."""
    return _field(9, _number(1, 1))


def read(message: bytes) -> Update | None:
    """What an update tells; None for a kind that was not asked for. Raises MalformedError."""
    found: Update | None = None
    for number, value in _fields(message):  # the last one counts, as everywhere in this encoding
        if number in _READERS:
            found = _READERS[number](_bytes(value))
    return found


def _slot(data: bytes) -> Slot:
    told = dict(_fields(data))
    parent = _int(told[2]) if 2 in told else None
    return Slot(_int(told.get(1, 0)), parent, _int(told.get(3, 0)))


def _status(data: bytes) -> Transaction:
    told = dict(_fields(data))
    return Transaction(_signature(told.get(2, b"")), _int(told.get(1, 0)))


def _transaction(data: bytes) -> Transaction:
    told = dict(_fields(data))
    info = dict(_fields(_bytes(told.get(1, b""))))
    return Transaction(_signature(info.get(1, b"")), _int(told.get(2, 0)))


def _ping(data: bytes) -> Ping:
    for _ in _fields(data):
        pass
    return Ping()


_READERS: Mapping[int, Callable[[bytes], Update]] = {3: _slot, 4: _transaction, 6: _ping, 10: _status}


def _signature(value: int | bytes) -> str:
    data = _bytes(value)
    if len(data) != base58.SIGNATURE_BYTES:
        raise MalformedError("a signature has 64 bytes")
    return base58.encode(data)


def _int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise MalformedError("bytes where a number belongs")
    return value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise MalformedError("a number where bytes belong")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values; those of fixed width as bytes. Raises MalformedError."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise MalformedError("there is no field 0")
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            yield number, value
            continue
        if kind == _BYTES:
            size_bytes, at = _read_varint(data, at)
        elif kind in _FIXED_BYTES:
            size_bytes = _FIXED_BYTES[kind]
        else:
            raise MalformedError("a kind of field that there is not")
        if size_bytes > len(data) - at:
            raise MalformedError("cut short")
        yield number, data[at : at + size_bytes]
        at += size_bytes


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to 64 bits, and where it ends."""
    value = 0
    for index, byte in enumerate(data[at : at + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value & _U64_MASK, at + index + 1
    raise MalformedError("a number without an end")


def _varint(value: int) -> bytes:
    assert 0 <= value <= _U64_MASK, "numbers are unsigned, of 64 bits"
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value)


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _entry(number: int, value: bytes) -> bytes:
    """Our one entry of a map: the name of a filter, and the filter."""
    return _field(number, _field(1, _FILTER) + _field(2, value))
