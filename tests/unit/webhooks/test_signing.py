"""Signatures, against the official Standard Webhooks package, the promised vector and plain hmac."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from tempa.core.signing import (
    hex_signature,
    new_secret,
    sign_link,
    sign_token,
    standard_signature,
    verify_link,
    verify_token,
    webhook_headers,
)

SECRET = "whsec_dGVtcGEtdGVzdC1zZWNyZXQtMzItYnl0ZXMtbG9uZyE="
EVENT_ID = "evt_9b1deb4d3b7d4"
TIMESTAMP = 1711929600
BODY = (
    '{"event":"3d_reconstruction.completed","type":"3d_reconstruction.completed","id":"evt_9b1deb4d3b7d4",'
    '"timestamp":1711929600,"data":{"job_id":"job_tripo_8849201","nama":"roda gigi \u00f8120"}}'
).encode()
KEY, OLD_KEY = b"k" * 32, b"o" * 32

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)


def test_the_published_vector_holds() -> None:
    assert len(BODY) == 187
    assert standard_signature(SECRET, EVENT_ID, TIMESTAMP, BODY) == (
        "v1,J5utg57KeJcio4zrtKJRw+EcIDWPzZ7URt8qavoOq/Y="
    )
    assert hex_signature(SECRET, BODY) == "e8ccecffb545a568c57a5234699b4330ff8d5aa768c0f235356a0bf63f6ac553"


def test_a_new_secret_is_32_random_bytes_behind_its_prefix() -> None:
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert all(len(base64.b64decode(secret.removeprefix("whsec_"))) == 32 for secret in secrets)


@given(json_values, st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=40))
def test_the_official_package_accepts_what_we_sign(document: Any, message_id: str) -> None:
    secret, timestamp = new_secret(), int(time.time())
    body = json.dumps({"data": document}, ensure_ascii=False).encode("utf-8", "replace")
    headers = dict(webhook_headers([secret], message_id, timestamp, body))
    Webhook(secret).verify(body.decode(), headers)  # raises unless it does
    official = Webhook(secret).sign(message_id, datetime.fromtimestamp(timestamp, UTC), body.decode())
    assert headers["webhook-signature"] == official


@given(st.binary(max_size=300), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_the_hex_form_is_keyed_with_the_whole_secret(body: bytes, secret: str) -> None:
    assert hex_signature(secret, body) == hmac.new(secret.encode("utf-8"), body, hashlib.sha256).hexdigest()


def test_while_a_secret_rotates_both_sign_and_the_newest_comes_first() -> None:
    new, old = new_secret(), new_secret()
    headers = dict(webhook_headers([new, old], EVENT_ID, TIMESTAMP, BODY))
    assert headers["webhook-id"] == EVENT_ID
    assert headers["webhook-timestamp"] == "1711929600"
    assert headers["webhook-signature"].split(" ") == [
        standard_signature(secret, EVENT_ID, TIMESTAMP, BODY) for secret in (new, old)
    ]
    assert headers["X-Webhook-Signature"] == hex_signature(new, BODY)
    assert headers["X-Webhook-Signature-Previous"] == hex_signature(old, BODY)


def test_with_one_secret_there_is_no_previous_signature() -> None:
    names = [name for name, _ in webhook_headers([SECRET], EVENT_ID, TIMESTAMP, BODY)]
    assert names == ["webhook-id", "webhook-timestamp", "webhook-signature", "X-Webhook-Signature"]


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", "whsec_not base64", "whsec_\u00e9", "whsec_YWJj=YWJj", "whsec_YWJj=", "whsec_abc"],
)
def test_what_is_no_secret_does_not_sign(secret: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        standard_signature(secret, EVENT_ID, TIMESTAMP, BODY)


def test_a_link_holds_for_its_parts_its_end_and_its_keys_only() -> None:
    signature = sign_link(KEY, ("cad_1", "model.step"), 2000)
    assert verify_link([OLD_KEY, KEY], ("cad_1", "model.step"), 2000, signature)
    assert not verify_link([KEY], ("cad_1", "model.stl"), 2000, signature)
    assert not verify_link([KEY], ("cad_1model", ".step"), 2000, signature)
    assert not verify_link([KEY], ("cad_1", "model.step", ""), 2000, signature)
    assert not verify_link([KEY], ("cad_1", "model.step"), 2001, signature)
    assert not verify_link([OLD_KEY], ("cad_1", "model.step"), 2000, signature)
    assert not verify_link([], ("cad_1", "model.step"), 2000, signature)


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_different_parts_never_share_a_signature(one: list[str], other: list[str]) -> None:
    assert (sign_link(KEY, one, 1) == sign_link(KEY, other, 1)) == (one == other)


@given(st.text())
def test_no_made_up_signature_opens_a_link(signature: str) -> None:
    assert not verify_link([KEY], ("cad_1",), 2000, signature)


def test_a_signature_travels_in_a_url_as_it_is() -> None:
    assert all(sign_link(KEY, (str(n),), n).replace("-", "a").replace("_", "a").isalnum() for n in range(200))


def test_a_token_gives_its_subject_until_its_end() -> None:
    token = sign_token(KEY, "cad_06b3", 2000)
    assert token.startswith("cad_06b3.2000.")
    assert verify_token([OLD_KEY, KEY], token, 1999.9) == "cad_06b3"
    assert verify_token([KEY], token, 2000) is None
    assert verify_token([OLD_KEY], token, 0) is None
    assert verify_token([KEY], token.replace("cad_06b3", "cad_06b4"), 0) is None
    assert verify_token([KEY], token.replace(".2000.", ".9000."), 0) is None
    assert verify_token([KEY], token, float("nan")) is None


def test_a_links_signature_is_no_token() -> None:
    assert verify_token([KEY], f"cad_1.2000.{sign_link(KEY, ('cad_1',), 2000)}", 0) is None


@given(st.text() | st.from_regex(r"[a-z]{1,4}\.[0-9]{1,20}\.[A-Za-z0-9_-]{40,44}"))
def test_no_made_up_token_is_accepted(token: str) -> None:
    assert verify_token([KEY], token, 0) is None


def test_a_short_key_signs_nothing() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        sign_link(b"short", ("x",), 1)
