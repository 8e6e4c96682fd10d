"""What host, zygote and child say to one another: JSON messages and their framing. Pure.

Two lines carry them. The *control line* joins the host and a zygote or a resident process; it keeps the
borders of messages by itself (`control_line`) and its messages are small. The *channel* joins the host and
one child, or one attempt in a resident process, and is a stream, so messages travel in frames: four bytes of
length (big-endian), then that many bytes.

A child that ran a native kernel may have trampled on its own memory: everything that is read here is
checked, and anything unexpected is a `ProtocolError`.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Iterator

# A request body is at most 1 MiB; measurements of a thousand holes are some hundred KiB.
FRAME_BYTES_MAX = 8 * 1024 * 1024
_LENGTH = struct.Struct(">I")


class ProtocolError(Exception):
    """The other side said something that no sound process says."""


class MessageTooLarge(ProtocolError):  # noqa: N818 - reads as what it is at the raise
    """A message does not fit into a frame."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Host to zygote, with a descriptor: the child's end of its channel. The task comes when it comes."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Kill:
    """Host to zygote: SIGKILL to the attempt's process group. Late ones do no harm."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Ready:
    """Zygote or resident process to host: the engine is loaded. `size_bytes` is its address space."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class Unable:
    """Zygote or resident process to host, its last word: the engine cannot be loaded.

    `code` is the failure's, if the engine named one; a zygote says it too of an engine with threads.
    """

    reason: str
    code: str = "ENGINE_UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class Forked:
    """Zygote to host, with one descriptor: the child's pidfd, good before and after its death."""

    attempt: int
    pid: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Zygote to host: there is no child. `spoiled`: and there will be none, it has a second thread."""

    attempt: int
    spoiled: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Exited:
    """Zygote to host: the child is reaped. A negative `exit_code` is the signal that killed it."""

    attempt: int
    exit_code: int
    cpu_seconds: float
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True)
class Serve:
    """Host to resident process, with a descriptor: its end of the channel of the next attempt."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Served:
    """Resident process to host: the attempt is over, and it can take another."""

    attempt: int
    cpu_seconds: float
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True)
class Task:
    """Host to child, with a descriptor, its output file: the work and its bounds."""

    work: dict[str, Any]
    folder: str
    address_space_bytes: int
    cpu_seconds: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class Stage:
    """Child to host: how far it is."""

    stage: str
    fraction: float | int | None


@dataclass(frozen=True, slots=True)
class Done:
    """Child to host, its last word: what `run` returned. `wall_seconds` is the time inside `run`.

    `alone`: nothing else of the attempt runs, no other process and no second thread, so that the
    files are as they stay.
    """

    files: list[Any]
    measurements: dict[str, Any]
    wall_seconds: float
    peak_rss_bytes: int
    alone: bool


@dataclass(frozen=True, slots=True)
class Raised:
    """Child to host, its last word: a `TempaError`. Without `wall_seconds` the process's own counts."""

    code: str
    message: str
    retryable: bool
    hint: str | None
    detail: dict[str, Any]
    wall_seconds: float | None


@dataclass(frozen=True, slots=True)
class Fault:
    """Child to host, its last word: any other exception. For the log, never for a client."""

    trace: str
    wall_seconds: float


_ToHost = Ready | Unable | Forked | Refused | Exited | Served
_ToEngine = Fork | Kill | Serve
_OnChannel = Task | Stage | Done | Raised | Fault
Message = _ToEngine | _ToHost | _OnChannel

_KINDS: dict[str, type[Message]] = {kind.__name__.lower(): kind for kind in get_args(Message)}
_CONTAINERS = (dict, list)
# What `isinstance` takes: `dict` for `dict[str, Any]`.
_TYPES: dict[type[Message], dict[str, Any]] = {
    kind: {
        name: get_origin(hint) if get_origin(hint) in _CONTAINERS else hint
        for name, hint in get_type_hints(kind).items()
    }
    for kind in _KINDS.values()
}


def encode(message: Message) -> bytes:
    """A message as JSON.

    Raises:
        TypeError, ValueError: something in it is not JSON (NaN and infinities are not).
    """
    body = {field.name: getattr(message, field.name) for field in fields(message)}
    body["kind"] = type(message).__name__.lower()
    return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()


def decode(payload: bytes | bytearray) -> Message:
    """The message that `encode` made into `payload`; every field has its declared type.

    Raises:
        ProtocolError: it is anything else.
    """
    try:
        body = json.loads(payload, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("not JSON") from error
    if not isinstance(body, dict):
        raise ProtocolError("not an object")
    kind = _KINDS.get(str(body.pop("kind", None)))
    if kind is None:
        raise ProtocolError("not a known kind of message")
    types = _TYPES[kind]
    if body.keys() != types.keys() or not all(isinstance(body[name], types[name]) for name in types):
        raise ProtocolError(f"not the fields of {kind.__name__}")
    return kind(**body)


def _refuse_constant(name: str) -> float:
    raise ProtocolError(f"{name} is not JSON")


def frame(message: Message) -> bytes:
    """A message as one frame of a channel.

    Raises:
        MessageTooLarge: it has more than `FRAME_BYTES_MAX` bytes.
        TypeError, ValueError: as `encode`.
    """
    payload = encode(message)
    if len(payload) > FRAME_BYTES_MAX:
        raise MessageTooLarge(f"{len(payload)} bytes; a frame holds {FRAME_BYTES_MAX}")
    return _LENGTH.pack(len(payload)) + payload


class Frames:
    """Takes a channel's bytes in whatever pieces they come, and gives back whole messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that `data` completes. To be read to the end, or what is left stays behind.

        Raises:
            ProtocolError: a frame is too long or not a message; the stream is then useless.
        """
        self._buffer += data
        while (payload := self._next()) is not None:
            yield decode(payload)

    def _next(self) -> bytearray | None:
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > FRAME_BYTES_MAX:  # refused before it is awaited: the length may be garbage
            raise MessageTooLarge(f"{length} bytes; a frame holds {FRAME_BYTES_MAX}")
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        payload = self._buffer[_LENGTH.size : end]
        del self._buffer[:end]
        return payload
