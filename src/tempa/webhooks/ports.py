"""What the webhooks slice asks of the world."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Outbound:
    """One HTTP request to send: exactly these bytes, to exactly this URL."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    timeout_seconds: float
    method: str = "POST"
    response_bytes_max: int = 16_384


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of it. `status` is None when no valid answer came; then `error` says why.

    `error` is one of a closed set: `blocked_address`, `dns`, `connect_refused`,
    `connect_timeout`, `unreachable`, `tls`, `timeout`, `reset`, `protocol_error`,
    `headers_too_large`, `invalid_url`, `transport`. `timings` are seconds since the start:
    `name_lookup`, `connect`, `tls`, `first_byte`, `total`.
    """

    status: int | None
    error: str | None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    timings: Mapping[str, float] = field(default_factory=dict)
    peer: str | None = None


class Sender(Protocol):
    """The one outbound HTTP transport. Never raises for anything a receiver can do."""

    async def send(self, request: Outbound) -> Answer: ...
    async def close(self) -> None: ...
