"""What to do about an answer of a receiver, in words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.webhooks.ports import Answer

_OF_CASE: Mapping[str, str] = {
    "unicode": "Check the signature over the raw bytes, and decode them as UTF-8 after that.",
    "large": "Take bodies up to 256 KiB; look at the limits of the server before yours too.",
    "unknown-type": "Answer 2xx to types you do not know, and ignore them: new ones will come.",
    "duplicate": "Answer 2xx to an event you have handled before: it may come again at any time.",
}
_FORGED: Mapping[str, str] = {
    "tampered": "It does not check webhook-signature over the raw bytes: anybody can change what arrives.",
    "wrong-key": "It does not check whose signature it is: anybody can post here. Compute it by your secret.",
    "unsigned": "It takes what has no signature: anybody can post here. Answer 401 if a header is missing.",
    "stale": "Refuse a webhook-timestamp more than 300 s off: a captured one can be sent again for ever.",
}
_OF_STATUS: Mapping[int, str] = {
    400: "It finds fault with it: what does its log say?",
    401: "It refuses a good signature: has it the secret used here? `tempa webhooks verify` tells why.",
    403: "It refuses a good signature, or something before it (a firewall, a login) refuses the caller.",
    404: "Nothing lives at this path.",
    405: "It does not take POST at this path.",
    406: "It wants to choose what it is answered; a webhook's answer is not read: take it as it is.",
    408: "It gave up on reading the request.",
    409: "An event that is there already is no conflict: answer 2xx.",
    410: "It says that it is gone for good: Tempa stops sending to such an endpoint.",
    413: "It takes no body of this size: webhooks have up to 256 KiB.",
    415: "It does not take application/json.",
    421: "Another host answers for this name.",
    429: "It is limited to fewer requests than these, one after the other.",
}
_OF_ERROR: Mapping[str, str] = {
    "dns": "The name has no address. Is it spelt right, and public?",
    "connect_refused": "Nothing listens there. Does it run, and is the port right?",
    "connect_timeout": "No answer to the knock: a firewall drops it, or the host is down.",
    "unreachable": "There is no way to that address from here.",
    "tls": "No trusted connection: the certificate is expired, for another name, or of an unknown issuer.",
    "timeout": "Answer 2xx first and work afterwards: the whole exchange has 10 s by default.",
    "reset": "It hung up in the middle of it: what does its log say?",
    "protocol_error": "What answers there speaks no HTTP/1.1.",
    "headers_too_large": "Its answer has more than 64 KiB of headers.",
    "invalid_url": "The URL is none that two programs would read the same way.",
}


def for_taking(case: str, answer: Answer) -> str:
    """What makes a receiver take a delivery of this case, which it did not."""
    if answer.status is None:
        return _OF_ERROR.get(answer.error or "", "No valid answer came.")
    if 300 <= answer.status < 400:
        where = answer.headers.get("location", "")
        target = f"to {where}; give that URL" if where else "elsewhere"
        return f"It redirects {target}. Tempa never follows: a POST would arrive as a GET without its body."
    if case in _OF_CASE:
        return _OF_CASE[case]
    if answer.status >= 500:
        return "It breaks on it: what does its log say?"
    return _OF_STATUS.get(answer.status, "It refuses it: what does its log say?")


def against_taking(case: str) -> str:
    """What keeps a receiver from taking a delivery of this case, which it did."""
    return _FORGED[case]
