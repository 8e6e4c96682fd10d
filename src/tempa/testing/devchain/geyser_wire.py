"""A Geyser server's half of Protocol Buffers: what a client asks for, and updates as bytes.

Apart from the code that it tests, and from the file that both are written after: a mistake has to be made
twice to pass.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMITMENTS = ("processed", "confirmed", "finalized")
_UNSERVED = {1: "accounts", 4: "blocks", 5: "blocks_meta", 7: "accounts_data_slice", 8: "entry"}


class BadRequest(ValueError):  # noqa: N818 - it says what is the case
    """A request that a server refuses, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a transaction has to be: each that is set is asked about. `whole`: it is told with its bytes."""

    whole: bool
    vote: bool | None = None
    failed: bool | None = None
    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()

    def admits(self, accounts: frozenset[str], *, failed: bool) -> bool:
        """Whether it lets a transaction through that names these accounts and is no vote."""
        return (
            self.vote is not True
            and self.failed in {None, failed}
            and (not self.include or not self.include.isdisjoint(accounts))
            and self.exclude.isdisjoint(accounts)
            and self.required <= accounts
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client sent. `slots` and `transactions` by the names of their filters.

    `slots`: whether only steps to the commitment asked for are told. `is_ping`: it is nothing but that.
    """

    slots: dict[str, bool]
    transactions: dict[str, Filter]
    commitment: str = "processed"
    from_slot: int | None = None
    is_ping: bool = False


def request_of(message: bytes) -> Request:
    """Read a SubscribeRequest. Raises BadRequest."""
    slots: dict[str, bool] = {}
    transactions: dict[str, Filter] = {}
    single: dict[str, Any] = {}
    for number, value in _members(message):
        if number == 2:
            name, filter_bytes = _entry(value)
            slots[name] = bool(dict(_members(filter_bytes)).get(1, 0))
        elif number in {3, 10}:
            name, filter_bytes = _entry(value)
            transactions[name] = _filter(filter_bytes, whole=number == 3)
        elif number == 6:
            single["commitment"] = COMMITMENTS[value]
        elif number == 9:
            single["is_ping"] = True
        elif number == 11:
            single["from_slot"] = value
        elif number in _UNSERVED:
            raise BadRequest(f"{_UNSERVED[number]} are not served here")
    return Request(slots=slots, transactions=transactions, **single)


def slot_update(names: list[str], slot: int, parent: int, status: str) -> bytes:
    """A slot has come to a status."""
    step = _integer(1, slot) + _integer(2, parent) + _integer(3, COMMITMENTS.index(status))
    return _filters(names) + _piece(3, step)


def status_update(names: list[str], slot: int, signature: bytes, index: int, *, failed: bool) -> bytes:
    """A transaction's fate, without the transaction."""
    told = _integer(1, slot) + _piece(2, signature) + _integer(4, index)
    return _filters(names) + _piece(10, told + (_piece(5, _piece(1, b"\0")) if failed else b""))


def transaction_update(names: list[str], slot: int, signature: bytes, index: int, raw: bytes) -> bytes:
    """A whole transaction. `raw` stands where a real server takes it to pieces: nobody here reads those."""
    info = _piece(1, signature) + _piece(3, _piece(2, raw)) + _integer(5, index)
    return _filters(names) + _piece(4, _piece(1, info) + _integer(2, slot))


def ping_update() -> bytes:
    """Asks for a sign of life."""
    return _piece(6, b"")


def pong_update() -> bytes:
    """What a client's ping is answered with."""
    return _piece(9, _integer(1, 1))


def _filter(data: bytes, *, whole: bool) -> Filter:
    lists: dict[int, set[str]] = {3: set(), 4: set(), 6: set()}
    flags: dict[int, bool] = {}
    for number, value in _members(data):
        if number in lists:
            lists[number].add(value.decode())
        elif number in {1, 2}:
            flags[number] = bool(value)
        else:
            raise BadRequest("a filter that is not served here")
    include, exclude, required = (frozenset(lists[number]) for number in (3, 4, 6))
    return Filter(
        whole=whole,
        vote=flags.get(1),
        failed=flags.get(2),
        include=include,
        exclude=exclude,
        required=required,
    )


def _entry(data: bytes) -> tuple[str, bytes]:
    members = dict(_members(data))
    return members.get(1, b"").decode(), members.get(2, b"")


def _members(data: bytes) -> Iterator[tuple[int, Any]]:
    stream = io.BytesIO(data)
    while stream.tell() < len(data):
        key = _read(stream)
        if key % 8 == 0:
            yield key // 8, _read(stream)
        elif key % 8 == 2:
            yield key // 8, stream.read(_read(stream))
        else:
            raise BadRequest("an encoding that no client has use for here")


def _read(stream: io.BytesIO) -> int:
    groups = []
    while True:
        byte = stream.read(1)
        if not byte:
            raise BadRequest("cut short")
        groups.append(byte[0] % 128)
        if byte[0] < 128:
            return sum(group * 128**place for place, group in enumerate(groups))


def _filters(names: list[str]) -> bytes:
    return b"".join(_piece(1, name.encode()) for name in names)


def _integer(number: int, value: int) -> bytes:
    return _base128(number * 8) + _base128(value)


def _piece(number: int, data: bytes) -> bytes:
    return _base128(number * 8 + 2) + _base128(len(data)) + data


def _base128(value: int) -> bytes:
    rest, low = divmod(value, 128)
    return bytes([low + 128]) + _base128(rest) if rest else bytes([low])
