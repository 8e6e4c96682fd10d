"""What an attempt's record hints at: from a receiver's answer, by the real transport, to either store."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cryptography import x509

from tempa.adapters.senders.curl import CurlSender
from tempa.core.clock import SystemClock, rfc3339
from tempa.webhooks.views import delivery_view
from tests.integration.senders.certificates import certificate, secure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tempa.core.clock import Clock

    Opener = Callable[[Clock], Awaitable[Any]]

LOCALHOST = ipaddress.ip_address("127.0.0.1")


async def test_a_redirect_and_a_certificates_end_are_on_record(open_any: Opener, tmp_path: Path) -> None:
    post = await open_any(SystemClock())
    pem = certificate(tmp_path, x509.IPAddress(LOCALHOST), days=9)
    ends_at = x509.load_pem_x509_certificate(pem.read_bytes()).not_valid_after_utc
    assert timedelta(days=8) < ends_at - datetime.now(UTC) < timedelta(days=10)
    sender = CurlSender([ipaddress.ip_network("127.0.0.0/8")], ca_file=str(pem))
    with secure(pem) as receiver:
        await post.announce(receiver.url("/redirect/302"))
        async with post.delivering(sender):

            async def is_attempted() -> bool:
                (delivery,) = await post.deliveries()
                return any(one.outcome for one in (await post.record(delivery.id))[1])

            await post.until(is_attempted)
    await sender.close()

    (delivery,) = await post.deliveries()
    hint = delivery_view(*await post.record(delivery.id))["attempts"][0]["hint"]
    assert hint.startswith("redirects_to /")
    assert hint.endswith(f"Its TLS certificate ends on {rfc3339(ends_at)}: renew it.")
