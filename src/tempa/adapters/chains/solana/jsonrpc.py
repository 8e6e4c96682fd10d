"""JSON-RPC over the server's one outbound transport: one call, and what its failure means."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from tempa.settlement.ports import Trouble
from tempa.webhooks.ports import Outbound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from tempa.adapters.chains.solana.bucket import TokenBucket
    from tempa.webhooks.ports import Answer, Sender

# The largest answers are pages of 1,000 signatures (0.3 MB) and transactions with many inner instructions.
_RESPONSE_BYTES_MAX = 8 * 1024 * 1024
_PAUSE_SECONDS_MAX = 900.0  # of Retry-After: a node cannot stop us for a day
_PAUSE_SECONDS = 1.0  # of 429 without one
_DETAIL_LETTERS_MAX = 200

_VERSION_UNSUPPORTED = -32015
_BEHIND = -32016  # it has not reached the minContextSlot asked for
# By Agave's `rpc_custom_error`: this node cannot tell now; another one, or a later call, may.
_UNAVAILABLE = {-32000, -32001, -32004, -32005, -32007, -32008, -32009, -32014, -32019, -32603}
_RATE_LIMITED = {429, -32429, -32097}
_TRANSPORT: Mapping[str, str] = {
    "timeout": "node_timeout",
    "connect_timeout": "node_timeout",
    "blocked_address": "call_refused",
    "invalid_url": "call_refused",
}


@dataclass(frozen=True, slots=True)
class Result:
    """The member `result` of an answer, whatever it is."""

    value: Any


class JsonRpc:
    """Calls to one node. Raises nothing for what a node can do.

    `name` stands in all that is told of the node: the URL may hold a key. `patience_seconds` is how long a
    call waits for its turn before it comes back as `node_rate_limited`.
    """

    def __init__(
        self,
        name: str,
        url: str,
        sender: Sender,
        bucket: TokenBucket,
        *,
        timeout_seconds: float,
        patience_seconds: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self._url = url
        self._sender = sender
        self._bucket = bucket
        self._timeout_seconds = timeout_seconds
        self._patience_seconds = patience_seconds
        self._sleep = sleep
        self._ids = count(1)

    async def call(self, method: str, *params: Any) -> Result | Trouble:
        """One call, once."""
        given, wait_seconds = self._bucket.take(self._patience_seconds)
        if not given:
            return self.trouble("node_rate_limited", "waiting for its turn", wait_seconds)
        if wait_seconds > 0:
            await self._sleep(wait_seconds)
        call_id = next(self._ids)
        body = json.dumps({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}).encode()
        answer = await self._sender.send(
            Outbound(
                self._url,
                (("Content-Type", "application/json"), ("Accept", "application/json")),
                body,
                self._timeout_seconds,
                response_bytes_max=_RESPONSE_BYTES_MAX,
            )
        )
        return self._read(answer, call_id)

    def trouble(self, reason: str, detail: str = "", retry_after_seconds: float | None = None) -> Trouble:
        """In this node's name, its words cut and without what might be the key."""
        told = self._without_key(detail)[:_DETAIL_LETTERS_MAX]
        return Trouble(reason, self.name, retry_after_seconds, told)

    def _without_key(self, words: str) -> str:
        """A node may quote the URL that it was asked at, or the part of it that is the key."""
        parts = urlsplit(self._url)
        for secret in (self._url, parts.path, parts.query, parts.netloc.rpartition("@")[0]):
            if len(secret) > 1:
                words = words.replace(secret, "...")
        return words

    def _read(self, answer: Answer, call_id: int) -> Result | Trouble:
        if answer.status is None:
            return self.trouble(_TRANSPORT.get(answer.error or "", "node_unreachable"), answer.error or "")
        if answer.status == 429:
            return self._limited(answer)
        try:
            document = json.loads(answer.body, parse_constant=_refuse)
        except (ValueError, RecursionError):  # cut short, no UTF-8, numbers of thousands of digits
            document = None
        if isinstance(document, dict) and isinstance(document.get("error"), dict):
            return self._refused(document["error"], answer)
        if answer.status != 200:
            return self._failed(answer)
        if not isinstance(document, dict) or "result" not in document or document.get("id") != call_id:
            return self.trouble("answer_unreadable", "no JSON-RPC answer to this call")
        return Result(document["result"])

    def _failed(self, answer: Answer) -> Trouble:
        passing = answer.status is not None and (answer.status >= 500 or answer.status in {408, 425})
        reason = "node_unavailable" if passing else "call_refused"
        return self.trouble(reason, f"HTTP {answer.status}", _pause(answer.headers))

    def _limited(self, answer: Answer) -> Trouble:
        seconds = _pause(answer.headers)
        seconds = _PAUSE_SECONDS if seconds is None else seconds
        self._bucket.pause(seconds)
        return self.trouble("node_rate_limited", "HTTP 429", seconds)

    def _refused(self, error: Mapping[str, Any], answer: Answer) -> Trouble:
        code = error.get("code") if isinstance(error.get("code"), int) else None
        detail = f"{code}: {error.get('message')}"
        if code in _RATE_LIMITED:
            return self._limited(answer)
        if code == _VERSION_UNSUPPORTED:
            return self.trouble("version_unsupported", detail)
        if code == _BEHIND:
            return self.trouble("node_behind", detail)
        if code in _UNAVAILABLE or (answer.status or 0) >= 500:
            return self.trouble("node_unavailable", detail, _pause(answer.headers))
        return self.trouble("call_refused", detail)


def _refuse(_token: str) -> NoReturn:
    raise ValueError("not a JSON number")


def _pause(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds, given as a number or as a date."""
    told = headers.get("retry-after", "").strip()
    if told.isascii() and told.isdecimal():
        return min(float(told[:9]), _PAUSE_SECONDS_MAX)
    try:
        at = parsedate_to_datetime(told)
    except (ValueError, TypeError, IndexError):
        return None
    seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - datetime.now(UTC).timestamp()
    return min(max(seconds, 0.0), _PAUSE_SECONDS_MAX)
