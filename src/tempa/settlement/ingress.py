"""Hearing of payments: a call is judged, and transactions' signatures are taken out of it. Nothing else is.

What a body says of amounts, accounts and owners is never read: the chain is asked (decision D6, D7).
"""

from __future__ import annotations

import hmac
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tempa.core import base58

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

NODES_MAX = (
    100_000  # of one body's JSON that are looked at: more hold no more signatures than a chain has time for
)
SIGNATURES_MAX = 5_000  # of one call: a block has fewer
WINDOW_SECONDS = 300.0


class NotAuthentic(Exception):  # noqa: N818 - an answer: 401
    """The call is not the provider's. `reason` is for the operator and for metrics, never for the caller."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Call:
    """What a provider posted. `headers` by lower-case name; `body` as it is authenticated: unpacked."""

    headers: Mapping[str, str]
    body: bytes
    at: datetime


@dataclass(frozen=True, slots=True)
class Heard:
    """The signatures of a call, each once, in its order; and the entries that held none, for people."""

    signatures: tuple[str, ...]
    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """An entry that no signature could be taken from: where it stands, and why."""

    place: str
    reason: str


class Source(Protocol):
    """One provider: how its calls are told from forgeries, and where signatures stand in them."""

    @property
    def name(self) -> str: ...
    @property
    def has_single_use_nonces(self) -> bool: ...  # False: an honest second try brings the first one's
    def check(self, call: Call, secrets: Sequence[str]) -> str | None: ...  # its nonce; raises NotAuthentic
    def hear(self, document: Any) -> Heard: ...  # of any JSON; never raises


def is_one_of(given: str, secrets: Sequence[str]) -> bool:
    """Whether `given` is one of the secrets, in a time that tells nothing of which or how much."""
    found = False
    for secret in secrets:
        found |= hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())
    return found


def within_window(timestamp: str | None, at: datetime) -> bool:
    """Whether a Unix time in seconds or milliseconds lies within five minutes of `at`."""
    if timestamp is None or not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 16:
        return False
    seconds = int(timestamp)
    if len(timestamp) >= 13:
        seconds //= 1000
    return abs(at.timestamp() - seconds) <= WINDOW_SECONDS


def entries(document: Any, take: Any) -> Heard:
    """What `take` finds in each entry of a list (one that is no list is its own single entry).

    An entry that is broken or of an unknown shape is searched through, and rejected by itself if it holds
    nothing: its neighbours are taken all the same.
    """
    listed = document if isinstance(document, list) else [document]
    found: dict[str, None] = {}
    rejected: list[Rejected] = []
    for number, entry in enumerate(listed[:SIGNATURES_MAX]):
        signatures = [one for one in take(entry) if base58.is_signature(one)] or list(search(entry))
        if not signatures:
            rejected.append(Rejected(f"/{number}", "no transaction signature in it"))
        found |= dict.fromkeys(signatures)
    if len(listed) > SIGNATURES_MAX:
        rejected.append(Rejected(f"/{SIGNATURES_MAX}", f"more than {SIGNATURES_MAX} entries"))
    return Heard(tuple(found)[:SIGNATURES_MAX], tuple(rejected))


def search(value: Any) -> Iterator[str]:
    """Signatures under their usual names, anywhere in a value of an unknown shape."""
    waiting: deque[Any] = deque([value])
    for _ in range(NODES_MAX):
        if not waiting:
            return
        node = waiting.popleft()
        if isinstance(node, dict):
            yield from _named(node)
            waiting.extend(inner for inner in node.values() if isinstance(inner, dict | list))
        elif isinstance(node, list):
            waiting.extend(inner for inner in node if isinstance(inner, dict | list))


def _named(node: dict[str, Any]) -> Iterator[str]:
    for name in ("signature", "txSignature", "tx_signature", "transactionSignature"):
        if base58.is_signature(node.get(name)):
            yield node[name]
    signatures = node.get("signatures")
    # A transaction's first signature names it; those behind it are its other signers'.
    if isinstance(signatures, list) and signatures and base58.is_signature(signatures[0]):
        yield signatures[0]
