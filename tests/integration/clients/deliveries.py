"""Deliveries as they come: true, broken and forged, of every kind of secret."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tempa.core.signing import secret_of
from tempa.webhooks.ed25519 import private_key_of, public_key_of
from tempa.webhooks.signing import webhook_headers

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = 1_711_929_600
ID = "evt_9b1deb4d3b7d4"
SHARED = [secret_of(bytes([number]) * 32) for number in range(1, 4)]
PRIVATE = [private_key_of(bytes([number]) * 32) for number in range(1, 4)]
PUBLIC = [public_key_of(key) for key in PRIVATE]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What `verify` is given."""

    body: bytes
    headers: dict[str, str]
    secrets: list[str]
    tolerance_seconds: float = 300
    now: float = NOW
    allow_unsigned_timestamp: bool = False


def event_body(**members: Any) -> bytes:
    event = {"event": "cad_generation.completed", "type": "cad_generation.completed", "id": ID, **members}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def delivery(body: bytes | None = None, signers: tuple[str, ...] = (SHARED[0],), at: int = NOW) -> Delivery:
    """A true one, for whoever has the first signer's secret."""
    raw = event_body(data={"ø": 1}) if body is None else body
    first = signers[0]
    known = public_key_of(first) if first in PRIVATE else first
    return Delivery(raw, dict(webhook_headers(signers, ID, at, raw)), [known])


def with_header(one: Delivery, name: str, value: str | None) -> Delivery:
    """Changed, added, or (None) taken away."""
    headers = {key: old for key, old in one.headers.items() if key.lower() != name.lower()}
    return replace(one, headers=headers if value is None else {**headers, name: value})


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)  # what JavaScript reads exactly
    | st.floats(-(2.0**53), 2.0**53)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_AS_ID = ID.encode()
_BODIES = st.one_of(
    st.builds(lambda data: event_body(data=data), _JSON),
    st.builds(lambda data: json.dumps({"id": ID, "data": data}, indent=1).encode() + b"\r\n", _JSON),
    st.sampled_from(
        [b"", b"{}", b"null", b"[]", b'"x"', b'{"id":5}', b'{"id":"evt_other"}', b"\xef\xbb\xbf{}"]
    ),
    st.sampled_from([event_body() + b"x", event_body().replace(b'"evt', b'"\xff'), b'{"id":"%s",}' % _AS_ID]),
    st.sampled_from([b'{"id":"\\ud800"}', b'{"__proto__":{"id":"x"}}', b'{"id":"a","id":"%s"}' % _AS_ID]),
    st.binary(max_size=12),
)
_SIGNERS = st.lists(st.sampled_from(SHARED + PRIVATE), min_size=1, max_size=4).map(tuple)
_GARBAGE_SECRETS = st.sampled_from(
    ["x", "whsec_", "whsec_!", "whpk_", "whpk_AAAA", PRIVATE[0], "whpk_" + "A" * 44, "é", "whsec_YWJj=",
     "\ud800", SHARED[0] + "\n", SHARED[0].removeprefix("whsec_"), "whsec_" + PUBLIC[0].removeprefix("whpk_"),
     "whpk_" + SHARED[0].removeprefix("whsec_"), PUBLIC[0].replace("=", "")]
)  # fmt: skip
_SECRETS = st.one_of(
    st.lists(st.sampled_from(SHARED + PUBLIC), min_size=1, max_size=4),
    st.lists(st.sampled_from(SHARED + PUBLIC) | _GARBAGE_SECRETS, max_size=3),
)
_NAMES = st.sampled_from(
    [
        *("webhook-id", "webhook-timestamp", "webhook-signature"),
        *("X-Webhook-Signature", "x-webhook-signature-previous"),
    ]
)
_VALUES = st.one_of(
    st.sampled_from(["", " ", "\t", ID, f" {ID}\t", "evt_\ud800", str(NOW), f"+{NOW}", f"{NOW}\n", f"{NOW}.0",
                     "0x1", "\u0661", "1e9", "9" * 12, "9" * 13, "v1", "v1,", ",", "v1a,AAAA", "v1,====",
                     "v1,AB==", "v1," + "A" * 43 + "=", "v1a," + "A" * 86 + "==", "00" * 32, "\u212a", "é"]),
    st.text("v1a,= +/AZ_-", max_size=20),
    st.text(max_size=6),
)  # fmt: skip


def _on_signature(change: Callable[[str], str]) -> Callable[[Delivery], Delivery]:
    def apply(one: Delivery) -> Delivery:
        return with_header(one, "webhook-signature", change(one.headers.get("webhook-signature", "")))

    return apply


def _url_safe(header: str) -> str:
    return header.replace("+", "-").replace("/", "_")


def _other_last_bits(header: str) -> str:
    """The same bytes to a lenient reader: the bits under the padding are set."""
    return header.replace("A=", "B=").replace("Q=", "R=")


_CHANGES: list[Callable[[Delivery], Delivery]] = [
    _on_signature(lambda header: header.replace("v1,", "v1a,")),
    _on_signature(lambda header: header.replace("v1a,", "v1,")),
    _on_signature(lambda header: header.replace("v1", "v2")),
    _on_signature(lambda header: header.replace("=", "")),
    _on_signature(lambda header: header.replace(" ", "  ")),
    _on_signature(lambda header: header.replace(" ", "\t")),
    _on_signature(lambda header: header.replace(",", ",,")),
    _on_signature(lambda header: header.lower()),
    _on_signature(lambda header: "v1a," + "A" * 86 + "== " + header),
    _on_signature(lambda header: ("v1a," + "A" * 86 + "== ") * 16 + header),
    _on_signature(lambda header: ("v1," + "A" * 43 + "= ") * 16 + header),
    _on_signature(_url_safe),
    _on_signature(_other_last_bits),
    lambda one: replace(one, headers={name.upper(): value for name, value in one.headers.items()}),
    lambda one: replace(one, headers=one.headers | {"Webhook-ID": ID}),
    lambda one: replace(one, headers={k: v for k, v in one.headers.items() if k.startswith("X-")}),
    lambda one: replace(one, headers={k: v.upper() for k, v in one.headers.items() if k.startswith("X-")}),
    lambda one: replace(one, body=one.body + b"\n"),
    lambda one: replace(one, body=b"\xef\xbb\xbf" + one.body),
    lambda one: replace(one, body=one.body.replace(b"\n", b"\r\n")),
    lambda one: replace(one, body=bytes([*one.body[:-1], one.body[-1] ^ 1]) if one.body else b"\0"),
]


def forged_by_public_key(key: str, body: bytes) -> Delivery:
    """What everybody can make who knows a public key: HMAC with the key's text, and with its bytes."""
    raw = secret_of(base64.b64decode(key.removeprefix("whpk_")))
    headers = dict(webhook_headers([raw], ID, NOW, body))
    return Delivery(body, headers, [key])


@st.composite
def deliveries(draw: st.DrawFn) -> Delivery:
    """True ones, with up to two things wrong."""
    body, signers = draw(_BODIES), draw(_SIGNERS)
    at = NOW + draw(st.sampled_from([0, 0, 0, -300, -301, 300, 301, -NOW]))
    made = Delivery(
        body=body,
        headers=dict(webhook_headers(signers, ID, at, body)),
        secrets=draw(_SECRETS),
        tolerance_seconds=draw(st.sampled_from([300, 300, 300, 0, 1e9])),
        allow_unsigned_timestamp=draw(st.booleans()),
    )
    for _ in range(draw(st.integers(0, 2))):
        if draw(st.booleans()):
            made = draw(st.sampled_from(_CHANGES))(made)
        else:
            made = with_header(made, draw(_NAMES), draw(st.none() | _VALUES))
    return made
