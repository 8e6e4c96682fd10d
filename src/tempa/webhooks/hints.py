"""What an attempt's record says to whoever mends the receiver, beside its status. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.core.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from tempa.webhooks.ports import Answer

LOCATION_CHARACTERS_MAX = 500
CERTIFICATE_NOTICE = timedelta(days=14)  # automatic renewal is due at 30 days: at 14 it has failed

_OF_STATUS: Mapping[int, str] = {
    401: "It refuses the signature: has it the secret of this endpoint? `tempa webhooks verify` tells why.",
    403: "It refuses the signature (has it this endpoint's secret?), or a firewall before it the caller.",
    404: "Nothing lives at this path: look at the URL.",
    405: "It does not take POST at this path: look at the URL.",
    410: "It says that it is gone for good. Nothing is sent there until the endpoint is resumed.",
    413: "It takes no body of this size: webhooks have up to 256 KiB. Raise its limit, or that of a proxy.",
    415: "It does not take application/json.",
}
_OF_ERROR: Mapping[str, str] = {
    "tls": "No trusted connection: its certificate has expired, is for another name, or of an unknown "
    "issuer; or it speaks nothing newer than TLS 1.1.",
    "blocked_address": "Its host resolves to an address that may not be called.",
    "dns": "Its name has no address, or the name server did not answer.",
}


def hint_of(answer: Answer, now: datetime) -> str | None:
    """In words: what to look at, and a certificate that is about to end. None: nothing."""
    return " ".join(_hints(answer, now)) or None


def _hints(answer: Answer, now: datetime) -> Iterator[str]:
    if answer.status is None:
        if hint := _OF_ERROR.get(answer.error or ""):
            yield hint
    elif 300 <= answer.status < 400 and (location := answer.headers.get("location")):
        yield f"redirects_to {_printable(location)}: give that URL, a redirect is never followed."
    elif answer.status in _OF_STATUS:
        yield _OF_STATUS[answer.status]
    ends_at = answer.certificate_expires_at
    if ends_at is not None and ends_at - now < CERTIFICATE_NOTICE:
        yield f"Its TLS certificate ends on {rfc3339(ends_at)}: renew it."


def _printable(text: str) -> str:
    """The beginning of what a receiver says, with nothing in it that a terminal or a store stumbles over."""
    shown = text[:LOCATION_CHARACTERS_MAX]
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in shown)
