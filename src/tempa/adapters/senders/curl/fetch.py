"""What a request names by URL, brought in by the server's own transport: a `tempa.jobs.ports.Fetch`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin, urlsplit

from tempa.adapters.senders.curl.download import Download, refusal
from tempa.adapters.senders.curl.names import system_addresses
from tempa.adapters.senders.curl.sender import CurlSender
from tempa.core.addresses import check_url
from tempa.core.errors import TempaError
from tempa.jobs.ports import Fetched
from tempa.webhooks.ports import Outbound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tempa.core.addresses import Network
    from tempa.webhooks.ports import Answer

# Stores of pictures hand out links that lead on to a signed one, mostly once; a webhook's URL is the
# receiver's own and is not followed. Each hop is checked as the first.
REDIRECTS_MAX = 3
_REDIRECTS = {301, 302, 303, 307, 308}
_FOREVER = {"blocked_address", "invalid_url", "headers_too_large"}
_WORDS = {
    "blocked_address": "The URL leads to an address that may not be called from here.",
    "invalid_url": "The URL cannot be called.",
    "dns": "The URL's host was not found.",
    "timeout": "The file did not come in time.",
    "tls": "No secure connection to the URL's host could be made.",
}


class CurlFetch:
    """Fetches into files, with a transport of its own: no slow disk holds up what others send.

    Addresses are judged as the sender's: in the URL, in what its name stands for, and at the connected
    socket; anew for each of at most three redirects, which never lead from https to http. Nothing is
    unpacked, and nothing of the environment (proxies, netrc, cookies) is sent. A server that sends less than
    a KiB a second for `trickle_seconds` is given up: a job waits for it. Belongs to one event loop.
    """

    def __init__(
        self,
        allow_networks: Sequence[Network] = (),
        *,
        allow_http: bool = False,
        connect_timeout_seconds: float = 3.0,
        user_agent: str = "Tempa",
        ca_file: str | None = None,
        resolve: Callable[[str], list[str]] = system_addresses,
        trickle_seconds: int = 10,
    ) -> None:
        self._trickle_seconds = trickle_seconds
        self._allow_networks = tuple(allow_networks)
        self._allow_http = allow_http
        self._sender = CurlSender(
            self._allow_networks,
            connect_timeout_seconds=connect_timeout_seconds,
            user_agent=user_agent,
            ca_file=ca_file,
            resolve=resolve,
        )

    async def fetch(
        self,
        url: str,
        target: Path,
        *,
        size_bytes_max: int,
        timeout_seconds: float,
        media_types: Sequence[str],
    ) -> Fetched | None:
        """Write the bytes behind `url` into `target`; None if they are more than `size_bytes_max`.

        Args:
            url: http or https; nothing has to have checked it.
            target: A file that is made, or overwritten; it is gone again if this fails.
            size_bytes_max: Not one byte more is written.
            timeout_seconds: For all of it, redirects included.
            media_types: What it may be declared as, `image/png` or `image/*`. No declaration and
                `application/octet-stream` always pass: content decides later.

        Raises:
            TempaError: SOURCE_FETCH_FAILED, retryable by case; `detail.reason` says why.
            OSError: `target` cannot be written.
        """
        deadline = time.monotonic() + timeout_seconds
        for _ in range(REDIRECTS_MAX + 1):
            self._check(url)
            download = Download(target, size_bytes_max, media_types, self._trickle_seconds)
            try:
                answer = await self._get(url, download, media_types, deadline)
                onward = _onward(url, answer)
                if onward is None:
                    return _fetched(download, answer, deadline)
                url = onward
            finally:
                download.close()
        raise refusal("redirects", f"The URL leads on more than {REDIRECTS_MAX} times.", limit=REDIRECTS_MAX)

    async def close(self) -> None:
        """Give up what is under way. Idempotent."""
        await self._sender.close()

    def _check(self, url: str) -> None:
        fault = check_url(url, allow_networks=self._allow_networks, allow_http=self._allow_http)
        if fault is not None:
            raise refusal("blocked_address", f"The URL may not be called. {fault}")

    async def _get(self, url: str, download: Download, media_types: Sequence[str], deadline: float) -> Answer:
        left = deadline - time.monotonic()
        if left <= 0:
            raise _failure("timeout")
        accept = ", ".join(media_types) or "*/*"
        headers = (("Accept", accept), ("Accept-Encoding", "identity"))
        request = Outbound(urldefrag(url).url, headers, b"", left, method="GET")
        return await self._sender.send(request, download)


def _onward(url: str, answer: Answer) -> str | None:
    """Where a redirect leads; None if it is none."""
    location = answer.headers.get("location")
    if answer.status not in _REDIRECTS or not location:
        return None
    try:
        onward = urljoin(url, location)
        downgraded = urlsplit(url).scheme.lower() == "https" and urlsplit(onward).scheme.lower() != "https"
    except ValueError:  # an unclosed bracket
        raise refusal("redirects", "The URL leads on to no URL.") from None
    if downgraded:
        raise refusal("redirects", "The URL leads on from https to http.")
    return onward


def _fetched(download: Download, answer: Answer, deadline: float) -> Fetched | None:
    if answer.status is None:
        raise _failure(answer.error or "transport")
    if download.broke is not None:
        raise download.broke
    if download.refused is not None:
        raise download.refused
    if download.too_large:
        return None
    if not download.whole:
        raise _failure("timeout" if time.monotonic() >= deadline else "incomplete")
    download.keep()
    return Fetched(download.size_bytes, download.sha256, _declared(answer.headers))


def _declared(headers: Mapping[str, str]) -> str | None:
    return headers.get("content-type")


def _failure(reason: str) -> TempaError:
    """Of what the transport says. What another attempt may cure is retryable."""
    message = _WORDS.get(reason, "The connection to the URL's host failed.")
    return TempaError(
        "SOURCE_FETCH_FAILED", message, retryable=reason not in _FOREVER, detail={"reason": reason}
    )
