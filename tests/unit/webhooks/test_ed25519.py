"""Ed25519, against the vectors of RFC 8032 and its equation, worked out here with plain integers."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempa.core import signing as core
from tempa.core.signing import hex_signature, new_secret, standard_signature
from tempa.webhooks.ed25519 import (
    new_private_key,
    private_key_of,
    public_key,
    public_key_of,
    sign,
    verifies,
)
from tempa.webhooks.endpoint_views import public_key_view
from tempa.webhooks.signing import signature_entry, webhook_headers

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
BASE_Y = 4 * pow(5, -1, P) % P

VECTORS = {  # RFC 8032 section 7.1: seed, public key, message, signature
    "TEST 1": (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    "TEST 2": (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
}  # fmt: skip


Point = tuple[int, int]


def add(one: Point, other: Point) -> Point:
    """The group law of RFC 8032 section 5.1.4, in affine coordinates."""
    (x1, y1), (x2, y2) = one, other
    product = D * x1 * x2 * y1 * y2 % P
    return (
        (x1 * y2 + x2 * y1) * pow(1 + product, -1, P) % P,
        (y1 * y2 + x1 * x2) * pow(1 - product, -1, P) % P,
    )


def times(factor: int, point: Point) -> Point:
    total = (0, 1)
    while factor:
        total = add(total, point) if factor & 1 else total
        point, factor = add(point, point), factor >> 1
    return total


def read_point(encoded: bytes) -> Point:
    number = int.from_bytes(encoded, "little")
    y, sign_bit = number & (2**255 - 1), number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * pow(2, (P - 1) // 4, P) % P
    assert x * x % P == square
    return (x if x & 1 == sign_bit else P - x, y)


def holds(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether S·B = R + k·A."""
    hashed = hashlib.sha512(signature[:32] + public + message).digest()
    k, s = int.from_bytes(hashed, "little") % ORDER, int.from_bytes(signature[32:], "little")
    base = read_point(BASE_Y.to_bytes(32, "little"))
    return times(s, base) == add(read_point(signature[:32]), times(k, read_point(public)))


@pytest.mark.parametrize("name", VECTORS)
def test_the_vectors_of_the_standard_hold(name: str) -> None:
    seed, public, message, signature = (bytes.fromhex(part) for part in VECTORS[name])
    private = private_key_of(seed)

    assert public_key_of(private) == "whpk_" + base64.b64encode(public).decode()
    assert sign(private, message) == signature
    assert verifies(public_key(public_key_of(private)), message, signature)
    assert holds(public, message, signature)


@settings(max_examples=10)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=300))
def test_a_header_signs_id_time_and_body(seed: bytes, body: bytes) -> None:
    """By the equation itself, not by the library that signed."""
    private = private_key_of(seed)
    version, _, value = signature_entry(private, "evt_ø", 1_711_929_600, body).partition(",")
    public = base64.b64decode(public_key_of(private).removeprefix("whpk_"))

    assert version == "v1a"
    assert holds(public, "evt_ø.1711929600.".encode() + body, base64.b64decode(value))
    assert not holds(public, "evt_ø.1711929601.".encode() + body, base64.b64decode(value))


def test_keys_are_new_each_time() -> None:
    keys = {new_private_key() for _ in range(100)}

    assert len(keys) == 100
    assert all(len(base64.b64decode(key.removeprefix("whsk_"))) == 32 for key in keys)


def test_every_secret_signs_by_its_kind_newest_first() -> None:
    new, key, old, oldest = new_secret(), new_private_key(), new_secret(), new_secret()
    headers = dict(webhook_headers([new, key, old, oldest], "evt_1", 1, b"{}"))

    assert headers["webhook-signature"].split(" ") == [
        standard_signature(new, "evt_1", 1, b"{}"),
        signature_entry(key, "evt_1", 1, b"{}"),
        standard_signature(old, "evt_1", 1, b"{}"),
        standard_signature(oldest, "evt_1", 1, b"{}"),
    ]
    assert headers["X-Webhook-Signature"] == hex_signature(new, b"{}")
    assert headers["X-Webhook-Signature-Previous"] == hex_signature(old, b"{}")


def test_a_private_key_never_signs_in_hex() -> None:
    key, old = new_private_key(), new_secret()

    assert [name for name, _ in webhook_headers([key], "evt_1", 1, b"{}")][2:] == ["webhook-signature"]
    both = dict(webhook_headers([key, old], "evt_1", 1, b"{}"))
    assert both["X-Webhook-Signature"] == hex_signature(old, b"{}")
    assert "X-Webhook-Signature-Previous" not in both


SPELT = "A" * 43


@pytest.mark.parametrize(
    "key",
    ["", "whsk_", "whsk_AAAA", "whsk_!", "whsk_" + SPELT, f"whpk_{SPELT}=", "whsk_é", f"{SPELT}="],
)
def test_what_is_no_private_key_does_not_sign(key: str) -> None:
    with pytest.raises(ValueError, match="whsk_ and the base64 of 32 bytes"):
        sign(key, b"")


def test_core_alone_signs_by_no_key_rather_than_wrongly() -> None:
    with pytest.raises(ValueError, match="base64"):
        core.webhook_headers([new_private_key()], "evt_1", 1, b"{}")


def test_a_key_goes_by_its_thumbprint() -> None:
    """RFC 8037, appendices A.2 and A.3."""
    x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
    key = "whpk_" + base64.b64encode(base64.urlsafe_b64decode(x + "=")).decode()

    assert public_key_view(key) == {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": x,
        "kid": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
        "use": "sig",
        "alg": "EdDSA",
    }
