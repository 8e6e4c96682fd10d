"""The receiving end: good deliveries pass, all else is a WebhookVerificationError with a reason."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import typing
from datetime import UTC, datetime
from email.message import Message
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from tempa.core.signing import hex_signature, new_secret, secret_of
from tempa.webhooks import WebhookVerificationError, verify
from tempa.webhooks.ed25519 import new_private_key, public_key_of, sign
from tempa.webhooks.signing import webhook_headers
from tempa.webhooks.verifier import Reason

SECRET, OTHER = new_secret(), new_secret()
PRIVATE = new_private_key()
PUBLIC = public_key_of(PRIVATE)
NOW = 1_711_929_700
ID = "evt_9b1deb4d3b7d4"
EVENT = {
    "event": "cad_generation.completed",
    "type": "cad_generation.completed",
    "id": ID,
    "timestamp": 1,
    "data": {},
}
BODY = json.dumps(EVENT).encode()


def headers(secret: str = SECRET, body: bytes = BODY, at: int = NOW) -> dict[str, Any]:
    """Standard Webhooks headers as the official package makes them."""
    signature = Webhook(secret).sign(ID, datetime.fromtimestamp(at, UTC), body.decode())
    return {"webhook-id": ID, "webhook-timestamp": str(at), "webhook-signature": signature}


def reason(*arguments: Any, **options: Any) -> Reason:
    with pytest.raises(WebhookVerificationError) as caught:
        verify(*arguments, **({"now": NOW} | options))
    assert caught.value.reason in typing.get_args(Reason)
    return caught.value.reason


def test_what_the_official_package_signs_is_accepted() -> None:
    assert verify(BODY, headers(), SECRET, now=NOW) == EVENT


def test_what_tempa_sends_is_accepted() -> None:
    sent = dict(webhook_headers([SECRET, OTHER], ID, NOW, BODY))
    for secrets in (SECRET, OTHER, [new_secret(), OTHER], (SECRET,)):
        assert verify(BODY, sent, secrets, now=NOW) == EVENT


def test_a_public_key_accepts_what_its_private_key_signed_and_nothing_else() -> None:
    sent = dict(webhook_headers([PRIVATE], ID, NOW, BODY))
    assert list(sent) == ["webhook-id", "webhook-timestamp", "webhook-signature"]
    assert verify(BODY, sent, PUBLIC, now=NOW) == EVENT
    stranger = public_key_of(new_private_key())
    assert verify(BODY, sent, [stranger, SECRET, PUBLIC], now=NOW) == EVENT
    assert reason(BODY, sent, [stranger, SECRET]) == "no_match"
    assert reason(BODY + b" ", sent, PUBLIC) == "no_match"
    assert reason(BODY, sent | {"webhook-id": "evt_other"}, PUBLIC) == "no_match"
    assert reason(BODY, sent | {"webhook-timestamp": str(NOW + 1)}, PUBLIC) == "no_match"
    assert reason(BODY, sent, PUBLIC, now=NOW + 301) == "timestamp_too_old"


@pytest.mark.parametrize("signers", [[SECRET, PRIVATE], [PRIVATE, SECRET], [OTHER, PRIVATE, SECRET]])
def test_while_an_endpoint_changes_its_kind_either_will_do(signers: list[str]) -> None:
    sent = dict(webhook_headers(signers, ID, NOW, BODY))
    for secrets in (SECRET, PUBLIC, [PUBLIC, SECRET], [new_secret(), PUBLIC]):
        assert verify(BODY, sent, secrets, now=NOW) == EVENT


def test_an_entry_counts_only_for_a_secret_of_its_kind() -> None:
    """The public key is known to everybody: HMAC with it, in whatever spelling, proves nothing."""
    as_secret = secret_of(base64.b64decode(PUBLIC.removeprefix("whpk_")))
    forged = dict(webhook_headers([as_secret], ID, NOW, BODY))
    assert verify(BODY, forged, as_secret, now=NOW) == EVENT  # a true one, by HMAC
    assert reason(BODY, forged, PUBLIC) == "no_match"
    for wrong, secrets in ((("v1,", "v1a,"), [as_secret, PUBLIC]), (("v1a,", "v1,"), [PUBLIC, SECRET])):
        sent = dict(webhook_headers([PRIVATE if wrong[0] == "v1a," else as_secret], ID, NOW, BODY))
        moved = sent | {"webhook-signature": sent["webhook-signature"].replace(*wrong)}
        assert reason(BODY, moved, secrets) == "no_match"
    by_text = {"X-Webhook-Signature": hex_signature(PUBLIC, BODY)}
    assert reason(BODY, by_text, PUBLIC, allow_unsigned_timestamp=True) == "no_match"


def test_a_header_full_of_entries_costs_no_more_than_sixteen_checks() -> None:
    good = dict(webhook_headers([PRIVATE], ID, NOW, BODY))["webhook-signature"]
    bad = "v1a," + base64.b64encode(sign(PRIVATE, b"something else")).decode()
    sent = {"webhook-id": ID, "webhook-timestamp": str(NOW)}
    assert verify(BODY, sent | {"webhook-signature": " ".join([bad] * 15 + [good])}, PUBLIC, now=NOW) == EVENT
    assert reason(BODY, sent | {"webhook-signature": " ".join([bad] * 16 + [good])}, PUBLIC) == "no_match"


def test_the_private_key_is_not_for_receivers() -> None:
    with pytest.raises(WebhookVerificationError, match="give the public key, whpk_"):
        verify(BODY, headers(), [SECRET, PRIVATE], now=NOW)


def test_without_the_library_it_says_which_one_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tempa.webhooks.ed25519", None)  # as if its import failed
    with pytest.raises(WebhookVerificationError, match="needs the package cryptography") as caught:
        verify(BODY, headers(), PUBLIC, now=NOW)
    assert caught.value.reason == "invalid_secret"
    assert verify(BODY, headers(), SECRET, now=NOW) == EVENT


def test_who_has_an_hmac_secret_loads_no_library_for_keys() -> None:
    script = (
        "import sys, tempa.webhooks as w\n"
        "try: w.verify(b'{}', {'webhook-id': 'x', 'webhook-timestamp': '1', 'webhook-signature': 'v1,AAAA'},"
        " ['whsec_AAAA'], now=1)\n"
        "except w.WebhookVerificationError as error: print(error.reason, 'cryptography' in sys.modules)"
    )
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "no_match False\n"


def test_names_come_in_any_case_and_from_any_framework() -> None:
    message = Message()
    for name, value in headers().items():
        message[name.title()] = value
    assert verify(BODY, typing.cast("Any", message), SECRET, now=NOW) == EVENT
    assert verify(BODY, {k.upper(): v for k, v in headers().items()}, SECRET, now=NOW) == EVENT
    raw: Any = {name.encode(): value.encode() for name, value in headers().items()}
    assert verify(bytearray(BODY), raw, SECRET, now=NOW) == EVENT


@pytest.mark.parametrize(
    "around",
    ["{} garbage", "garbage {}", "  {}", "v1, {}", "v1,!!! {}", "v1,\u00e9 {}", "v2,abcd {}", "v1a,abcd {}",
     ",, {}", "v1,AAAA {} v1,BBBB"],
)  # fmt: skip
def test_a_good_entry_counts_whatever_stands_beside_it(around: str) -> None:
    signature = around.format(headers()["webhook-signature"])
    assert verify(BODY, headers() | {"webhook-signature": signature}, SECRET, now=NOW) == EVENT


@pytest.mark.parametrize("name", ["id", "timestamp", "signature"])
def test_a_missing_or_empty_header_is_told(name: str) -> None:
    name = f"webhook-{name}"
    without = {key: value for key, value in headers().items() if key != name}
    assert reason(BODY, without, SECRET) == "missing_header"
    assert reason(BODY, without | {name: ""}, SECRET) == "malformed_header"
    assert reason(BODY, without | {name: ["a", "b"]}, SECRET) == "malformed_header"


def test_a_header_given_twice_is_malformed() -> None:
    assert reason(BODY, headers() | {"Webhook-Id": ID}, SECRET) == "malformed_header"


@pytest.mark.parametrize("stamp", ["soon", "1.5", "-1", "+1711929700", "1_711", "\u0661", "9" * 13, "0x10"])
def test_a_timestamp_is_a_plain_whole_number(stamp: str) -> None:
    assert reason(BODY, headers() | {"webhook-timestamp": stamp}, SECRET) == "malformed_header"


@pytest.mark.parametrize("signature", ["garbage", "v1", "v1,", ",abc", " ", "   "])
def test_a_signature_header_without_any_entry_is_malformed(signature: str) -> None:
    assert reason(BODY, headers() | {"webhook-signature": signature}, SECRET) == "malformed_header"


def test_age_is_bounded_both_ways() -> None:
    assert verify(BODY, headers(at=NOW - 300), SECRET, now=NOW) == EVENT
    assert verify(BODY, headers(at=NOW + 300), SECRET, now=NOW) == EVENT
    assert reason(BODY, headers(at=NOW - 301), SECRET) == "timestamp_too_old"
    assert reason(BODY, headers(at=NOW + 301), SECRET) == "timestamp_too_new"
    assert verify(BODY, headers(at=NOW - 86_400), SECRET, tolerance_seconds=86_400, now=NOW) == EVENT
    assert reason(BODY, headers(at=NOW - 6), SECRET, tolerance_seconds=5) == "timestamp_too_old"
    assert reason(BODY, headers(), SECRET, tolerance_seconds=float("nan")) == "timestamp_too_old"
    assert reason(BODY, headers(), SECRET, now=float("nan")) == "timestamp_too_old"


def test_without_now_the_systems_clock_counts() -> None:
    with pytest.raises(WebhookVerificationError) as caught:
        verify(BODY, headers(), SECRET)
    assert caught.value.reason == "timestamp_too_old"


@given(st.integers(0, len(BODY) * 8 - 1))
def test_one_flipped_bit_of_the_body_is_noticed(bit: int) -> None:
    altered = bytearray(BODY)
    altered[bit // 8] ^= 1 << bit % 8
    assert reason(bytes(altered), headers(), SECRET) == "no_match"


def test_another_secret_another_id_another_time_do_not_match() -> None:
    assert reason(BODY, headers(), OTHER) == "no_match"
    assert reason(BODY, headers() | {"webhook-id": "evt_other"}, SECRET) == "no_match"
    assert reason(BODY, headers() | {"webhook-timestamp": str(NOW + 1)}, SECRET) == "no_match"
    assert reason(BODY, headers() | {"webhook-signature": "v1," + "A" * 43 + "="}, SECRET) == "no_match"


def test_a_good_signature_under_another_version_or_misspelt_does_not_match() -> None:
    good = headers()["webhook-signature"]
    for altered in (
        good.replace("v1,", "v2,"),
        good.replace("v1,", "v1,!"),
        good + "!",
        good.replace("v1", "V1"),
    ):
        assert reason(BODY, headers() | {"webhook-signature": altered}, SECRET) == "no_match"


def test_an_id_that_is_no_text_is_malformed() -> None:
    assert reason(BODY, headers() | {"webhook-id": "evt_\udc80"}, SECRET) == "malformed_header"


@pytest.mark.parametrize(
    "secrets",
    [
        "",
        [],
        None,
        5,
        b"whsec_AAAA",
        [""],
        [None],
        "whsec_",
        "whsec_not base64",
        [SECRET, "\udc80"],
        "\u00e9",
        "whpk_",
        "whpk_AAAA",
        [SECRET, "whpk_" + "A" * 43],
        "whpk_\u00e9",
        PUBLIC + "\n",
        PUBLIC.removesuffix("="),
    ],
)
def test_what_is_no_secret_is_told(secrets: Any) -> None:
    assert reason(BODY, headers(), secrets) == "invalid_secret"


@pytest.mark.parametrize("body", [None, "text", 5, [1]])
def test_a_body_that_is_not_raw_bytes_is_told(body: Any) -> None:
    assert reason(body, headers(), SECRET) == "invalid_body"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"id": 5}',
        "{}",
        f'{{"id": "{ID}", "n": NaN}}',
        '"x"',
        "[" * 100_000,
        f'{{"id": "{ID}", "n": {"9" * 5000}}}',
    ],
)
def test_signed_bytes_that_are_no_event_are_told(text: str) -> None:
    assert reason(text.encode(), headers(body=text.encode()), SECRET) == "invalid_body"


def test_a_header_that_names_another_event_than_the_body_is_told() -> None:
    body = json.dumps(EVENT | {"id": "evt_other"}).encode()
    assert reason(body, headers(body=body), SECRET) == "id_mismatch"


def test_the_hex_header_alone_counts_only_when_asked_for() -> None:
    only = {"X-Webhook-Signature": hex_signature(SECRET, BODY)}
    assert reason(BODY, only, SECRET) == "missing_header"
    assert verify(BODY, only, SECRET, now=NOW, allow_unsigned_timestamp=True) == EVENT
    assert reason(BODY, only, OTHER, allow_unsigned_timestamp=True) == "no_match"
    assert reason(BODY, {}, SECRET, allow_unsigned_timestamp=True) == "missing_header"
    assert (
        reason(BODY, {"x-webhook-signature": "\u00e9"}, SECRET, allow_unsigned_timestamp=True) == "no_match"
    )
    rotated = {
        "x-webhook-signature": "00",
        "x-webhook-signature-previous": hex_signature(SECRET, BODY).upper(),
    }
    assert verify(BODY, rotated, SECRET, now=NOW, allow_unsigned_timestamp=True) == EVENT


def test_asking_for_the_hex_header_does_not_switch_the_others_off() -> None:
    both = headers() | {"webhook-signature": "v1,AAAA"} | {"x-webhook-signature": hex_signature(SECRET, BODY)}
    assert reason(BODY, both, SECRET, allow_unsigned_timestamp=True) == "no_match"
    stale = headers(at=NOW - 999) | {"x-webhook-signature": hex_signature(SECRET, BODY)}
    assert reason(BODY, stale, SECRET, allow_unsigned_timestamp=True) == "timestamp_too_old"


NAMES = st.sampled_from(
    [
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
        "X-Webhook-Signature",
        "X-Webhook-Signature-Previous",
    ]
)
VALUES = st.one_of(
    st.none(), st.text(), st.binary(), st.integers(), st.lists(st.text(), max_size=2), st.floats(),
    st.just(ID), st.just(str(NOW)), st.just(10**400), st.text("v1a,= +/AZ"),
    st.binary(min_size=64, max_size=64).map(lambda raw: "v1a," + base64.b64encode(raw).decode()),
)  # fmt: skip
SECRETS = st.one_of(
    st.sampled_from([SECRET, PUBLIC, PRIVATE]),
    st.text(),
    st.binary(min_size=32, max_size=32).map(lambda raw: "whpk_" + base64.b64encode(raw).decode()),
    st.sampled_from(["whpk_", "whsec_", "whsk_"]).flatmap(lambda prefix: st.text().map(prefix.__add__)),
)
HEADERS = st.one_of(
    st.none(), st.integers(), st.text(), st.lists(st.tuples(NAMES, VALUES), max_size=3),
    st.dictionaries(st.one_of(NAMES, st.text(), st.binary(), st.none(), st.integers()), VALUES, max_size=6),
)  # fmt: skip


@given(
    st.one_of(st.binary(), st.just(BODY), st.none(), st.text()),
    HEADERS,
    st.one_of(st.just(SECRET), st.text(), st.lists(SECRETS, max_size=3), st.none(), SECRETS),
    st.booleans(),
)
def test_no_garbage_gets_past_or_out_another_way(
    body: Any, given_headers: Any, secrets: Any, loose: Any
) -> None:
    with pytest.raises(WebhookVerificationError) as caught:
        verify(body, given_headers, secrets, now=NOW, allow_unsigned_timestamp=loose)
    assert caught.value.reason in typing.get_args(Reason)
    assert str(caught.value).startswith(caught.value.reason)
