"""What a flow may ask of the world, and what comes back: plain values. No I/O.

A *flow* is a generator that yields effects (`Send`, `Pause`, ...) and is sent what came of each. All
logic of the client is written once, as flows; `drivers.py` and `async_drivers.py` do what flows ask
for, one blocking, one awaiting.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request. `path` is below the server's URL, or a whole URL: a link that needs no key."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Path | None = None
    silence_seconds: float = 20.0  # how long the server may say nothing
    repeatable: bool = True  # whether doing it twice is the same as doing it once


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. `headers` by lower-case name."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Lost:
    """No whole answer. Unless the request was never sent, it may have been acted on."""

    reason: str
    sent: bool


@dataclass(frozen=True, slots=True)
class Message:
    """One server-sent event."""

    event: str
    data: str


class Sink(Protocol):
    """Where a download goes."""

    def write(self, chunk: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Send:
    """Make the call; sent back: `Answer | Lost`."""

    call: Call


@dataclass(frozen=True, slots=True)
class Save:
    """Make the call; a body under 200 goes into `sink`; sent back: `Answer | Lost`."""

    call: Call
    sink: Sink


@dataclass(frozen=True, slots=True)
class Open:
    """Make the call and keep its answer open as a stream of events; sent back: `Answer | Lost`."""

    call: Call


@dataclass(frozen=True, slots=True)
class NextMessage:
    """Read on in the open stream; sent back: `Message | Lost`, None at its end."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Emit:
    """Hand a value to whoever iterates."""

    value: Any


Effect: TypeAlias = Send | Save | Open | NextMessage | Pause | Emit
Flow: TypeAlias = Generator[Effect, Any, T]
