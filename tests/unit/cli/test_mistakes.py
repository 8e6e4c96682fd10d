"""The detective: each known mistake is made here with plain hmac, and has to be named."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.cli import mistakes
from tempa.cli.signatures import check, explain
from tempa.core.signing import new_secret
from tempa.webhooks.ed25519 import new_private_key, public_key_of
from tempa.webhooks.signing import webhook_headers

SECRET, OLD = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TEXT = SECRET.removeprefix("whsec_")
KEY = base64.b64decode(TEXT)
NOW, ID = 1_711_929_600, "evt_1"
EVENT = {
    "event": "cad_generation.completed",
    "type": "cad_generation.completed",
    "id": ID,
    "timestamp": NOW,
    "data": {
        "job_id": "cad_1",
        "status": "completed",
        "model": "opencascade-brep",
        "compute_time_ms": 48,
        "artifacts": {"step": "https://tempa.example/a?x=1&y=<2>"},
        "length": 45.0,
        "tags": {"nama": "roda gigi ø120"},
    },
}
BODY = json.dumps(EVENT, ensure_ascii=False, separators=(",", ":")).encode()
WHOLE = f"{ID}.{NOW}.".encode() + BODY
HEADERS = dict(webhook_headers([SECRET], ID, NOW, BODY))


def digest(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def in_hex(body: bytes) -> str:
    return digest(SECRET.encode(), body).hex()


def dumped(document: Any = EVENT, **options: Any) -> bytes:
    return json.dumps(document, **options).encode()


def explained(computed: str, body: bytes = BODY, *secrets: str) -> str:
    right, words = explain(computed, body, HEADERS, secrets or [SECRET])
    assert not right
    return " ".join(words)


@pytest.mark.parametrize("computed", [b64(digest(KEY, WHOLE)), "v1," + b64(digest(KEY, WHOLE))])
def test_a_right_signature_is_called_right(computed: str) -> None:
    assert explain(computed, BODY, HEADERS, [SECRET]) == (True, ["This is right, for webhook-signature."])


def test_a_right_signature_in_hex_is_called_right() -> None:
    computed = digest(SECRET.encode(), BODY).hex().upper()
    assert explain(computed, BODY, {}, [SECRET]) == (True, ["This is right, for X-Webhook-Signature."])


COMPACT = {"separators": (",", ":"), "ensure_ascii": False}
MADE_WRONGLY = {
    # the key
    "whsec_ not taken off": ("v1," + b64(digest(SECRET.encode(), WHOLE)), "whsec_ included"),
    "not decoded": ("v1," + b64(digest(TEXT.encode(), WHOLE)), "here it was taken as text"),
    "whsec_ taken off for hex": (digest(TEXT.encode(), BODY).hex(), "here whsec_ was taken off"),
    "decoded for hex": (digest(KEY, BODY).hex(), "here it was decoded from base64"),
    "a line break in the secret": (digest(SECRET.encode() + b"\n", BODY).hex(), "line break at its end"),
    # the spelling
    "hex for base64": ("v1," + digest(KEY, WHOLE).hex(), "webhook-signature is base64"),
    "base64 for hex": (b64(digest(SECRET.encode(), BODY)), "X-Webhook-Signature is hex"),
    "base64 of the hex": ("v1," + b64(digest(KEY, WHOLE).hex().encode()), "base64 of the hex text"),
    "URL-safe": ("v1," + base64.urlsafe_b64encode(digest(KEY, WHOLE)).decode().rstrip("="), "unpadded"),
    "a label of others": ("sha256=" + in_hex(BODY), "`sha256=` does not belong"),
    # what is signed
    "the body alone": ("v1," + b64(digest(KEY, BODY)), "over the body alone"),
    "all of it, for hex": (in_hex(WHOLE), "X-Webhook-Signature is over the body alone"),
    "without the id": ("v1," + b64(digest(KEY, f"{NOW}.".encode() + BODY)), "webhook-id is missing"),
    "without the time": ("v1," + b64(digest(KEY, f"{ID}.".encode() + BODY)), "webhook-timestamp is missing"),
    "without dots": ("v1," + b64(digest(KEY, f"{ID}{NOW}".encode() + BODY)), "Dots belong"),
    # the body
    "nothing": (in_hex(b""), "something had read the request before"),
    "an object's name": (in_hex(b"[object Object]"), "JavaScript turned"),
    "a line break more": (in_hex(BODY + b"\n"), "over a line break at the end"),
    "CRLF more": (in_hex(BODY + b"\r\n"), "over a line break at the end"),
    "a byte order mark": (in_hex(b"\xef\xbb\xbf" + BODY), "over a byte order mark"),
    "Latin-1": (in_hex(BODY.decode().encode("latin-1")), "written as latin-1"),
    "read as Latin-1": (in_hex(BODY.decode("latin-1").encode()), "read as latin-1"),
    "Python's json": (in_hex(dumped()), "(spaces, escapes such as"),
    "spaces only": (in_hex(dumped(ensure_ascii=False)), "written again (spaces)"),
    "escapes only": (in_hex(dumped(separators=(",", ":"))), "(escapes such as"),
    "sorted": (in_hex(dumped(sort_keys=True, **COMPACT)), "(the order of keys)"),
    "indented": (in_hex(dumped(indent=2, ensure_ascii=False)), "written again (spaces)"),
    "JavaScript's numbers": (in_hex(BODY.replace(b"45.0", b"45")), "the spelling of numbers"),
    "PHP's slashes": (in_hex(BODY.replace(b"/", b"\\/")), "(escapes such as"),
    "Go's brackets": (
        digest(
            SECRET.encode(),
            BODY.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026"),
        ).hex(),
        "(escapes such as",
    ),
    # two at once
    "body alone, and hex": ("v1," + digest(KEY, BODY).hex(), "over the body alone"),
    "sorted, and whsec_ taken off": (
        digest(TEXT.encode(), dumped(sort_keys=True, **COMPACT)).hex(),
        "(the order of keys)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE_WRONGLY)
def test_a_mistake_in_computing_is_named(name: str) -> None:
    computed, words = MADE_WRONGLY[name]
    assert words in explained(computed)


@pytest.mark.parametrize("library", ["Python", "Node"])
def test_a_prefix_that_was_decoded_along_is_named(library: str) -> None:
    """Python drops the underscore; Node takes it for a slash, and drops the letter left over in the end."""
    secret = new_secret()
    read = secret if library == "Python" else secret.replace("_", "/")[:48]
    taken = base64.b64decode(read)
    assert "decoded along with it" in explained("v1," + b64(digest(taken, WHOLE)), BODY, secret)


def test_two_mistakes_are_both_named() -> None:
    found = explained(MADE_WRONGLY["sorted, and whsec_ taken off"][0])
    assert "the order of keys" in found
    assert "whsec_ was taken off" in found


def test_an_older_secret_is_named() -> None:
    computed = digest(OLD.encode(), BODY).hex()
    right, words = explain(computed, BODY, HEADERS, [SECRET, OLD])
    assert right
    assert "the old one" in words[1]


@pytest.mark.parametrize(
    "computed", ["", "nonsense", "v1,", "00" * 32, "v1," + b64(bytes(32)), "é", "=", "\udc80"]
)
def test_what_nobody_knows_is_not_explained(computed: str) -> None:
    assert "Nothing known gives this signature" in explained(computed)


REWRITTEN = {
    "a line break more": (BODY + b"\n", "ends in a line break"),
    "a byte order mark": (b"\xef\xbb\xbf" + BODY, "byte order mark (EF BB BF) stands before"),
    "a mark and a line break": (b"\xef\xbb\xbf" + BODY + b"\r\n", "byte order mark (EF BB BF) stands before"),
    "spaces": (dumped(ensure_ascii=False), "written again (spaces)"),
    "escapes": (dumped(separators=(",", ":")), "written again (escapes such as"),
    "sorted": (dumped(sort_keys=True, **COMPACT), "written again (the order of keys)"),
    "sorted, spaced and escaped": (dumped(sort_keys=True, indent=2), "(spaces, the order of keys, escapes"),
    "Latin-1": (BODY.decode().encode("latin-1"), "read as"),
}


@pytest.mark.parametrize("name", REWRITTEN)
@pytest.mark.parametrize("only", ["webhook-", "x-webhook-"])
def test_what_was_done_to_the_body_is_named_by_either_signature(name: str, only: str) -> None:
    body, words = REWRITTEN[name]
    headers = {key: value for key, value in HEADERS.items() if key.lower().startswith(only)}

    hint = check(body, headers | {"webhook-id": ID, "webhook-timestamp": str(NOW)}, [SECRET], now=NOW).hint

    if only == "webhook-":
        assert words in (hint or "")
    else:  # without webhook-signature the missing header is what is told
        assert hint is None


def test_line_breaks_within_the_body_are_looked_at() -> None:
    body = dumped(indent=1, ensure_ascii=False)
    headers = dict(webhook_headers([SECRET], ID, NOW, body))

    assert "became CRLF" in (check(body.replace(b"\n", b"\r\n"), headers, [SECRET], now=NOW).hint or "")
    in_crlf = dict(webhook_headers([SECRET], ID, NOW, body.replace(b"\n", b"\r\n")))
    assert "over CRLF line breaks" in (check(body, in_crlf, [SECRET], now=NOW).hint or "")


@pytest.mark.parametrize("secret", [SECRET + "\n", f" {SECRET}", f'"{SECRET}"', f"'{SECRET}'\n"])
def test_what_stands_around_the_secret_is_named(secret: str) -> None:
    assert "white space around the secret, or quotation marks" in (
        check(BODY, HEADERS, [secret], now=NOW).hint or ""
    )


def test_the_old_secret_is_told_while_it_still_works_and_after() -> None:
    rotating = dict(webhook_headers([SECRET, OLD], ID, NOW, BODY))

    verdict = check(BODY, rotating, [OLD], now=NOW)

    assert verdict.verifies
    assert not verdict.hex_matches
    assert "the old one" in (verdict.hint or "")
    without = {name: value for name, value in rotating.items() if name != "webhook-signature"}
    after = check(BODY, without | {"webhook-signature": HEADERS["webhook-signature"]}, [OLD], now=NOW)
    assert (after.verifies, after.reason) == (False, "no_match")
    assert "the old one" in (after.hint or "")
    assert check(BODY, rotating, [SECRET], now=NOW).hint is None


@pytest.mark.parametrize(
    ("off_seconds", "words"),
    [
        (400, "lies 400 s behind this machine's clock. All else is right"),
        (-400, "lies 400 s ahead of this machine's clock. All else is right"),
        (7 * 3600 + 2, "Whole hours: somebody took local time for UTC"),
        (5400, "lies 5400 s behind this machine's clock. All"),
    ],
)
def test_a_clock_that_is_off_is_measured(off_seconds: int, words: str) -> None:
    verdict = check(BODY, HEADERS, [SECRET], now=NOW + off_seconds)

    assert verdict.reason == ("timestamp_too_old" if off_seconds > 0 else "timestamp_too_new")
    assert words in (verdict.hint or "")


def test_a_clock_that_is_off_is_not_blamed_alone() -> None:
    hint = check(BODY, HEADERS, [OLD], now=NOW + 400).hint
    assert "Nor does it verify otherwise (no_match)" in (hint or "")


def test_milliseconds_are_named() -> None:
    hint = check(BODY, HEADERS | {"webhook-timestamp": f"{NOW}000"}, [SECRET], now=NOW).hint
    assert "milliseconds" in (hint or "")


def test_a_secret_of_the_other_kind_is_named() -> None:
    private = new_private_key()
    public = public_key_of(private)
    by_key = dict(webhook_headers([private], ID, NOW, BODY))

    assert "whpk_ is for v1a" in (check(BODY, HEADERS, [public], now=NOW).hint or "")
    assert "the endpoint's public key, whpk_" in (check(BODY, by_key, [SECRET], now=NOW).hint or "")
    assert "whpk_ is for v1a" in explained("v1," + b64(digest(KEY, WHOLE)), BODY, public)
    assert check(BODY, by_key, [public], now=NOW).verifies
    for secrets, headers in (([public_key_of(new_private_key())], by_key), ([new_secret()], HEADERS)):
        assert "The secret is another one" in (check(BODY, headers, secrets, now=NOW).hint or "")


def test_a_large_body_is_not_tried_in_thousands_of_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """When all was tried at once, 200 kB took 34 s."""
    body = dumped(EVENT | {"note": "ø" * 100_000}, **COMPACT)
    headers = dict(webhook_headers([SECRET], ID, NOW, body))
    again = dumped(json.loads(body), sort_keys=True, ensure_ascii=False)
    tried = Mock(side_effect=mistakes._makes)
    monkeypatch.setattr(mistakes, "_makes", tried)

    told = [check(again, headers, [secret], now=NOW).hint or "" for secret in (SECRET, OLD)]

    assert "written again (spaces, the order of keys)" in told[0]
    assert "The secret is another one" in told[1]
    assert 0 < tried.call_count < 500


SECRETS = st.text() | st.sampled_from(
    [SECRET, OLD, "whpk_" + b64(bytes(32)), "whsk_x", "whpk_", "\udc80", " "],
)
BODIES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"[" * 100_000, b'{"a":1e999}', b'{"a":NaN}', b'{"a":"\\ud800"}', b"9" * 5000]),
    st.sampled_from([b"\xef\xbb\xbf", b'{"data":{"tags":[],"a":1.0},"id":5}']),
)
VALUES = st.text() | st.sampled_from(
    [*HEADERS.values(), "v1,", "v1,AAAA", "sha256=00", "00" * 32, "é", "\ud800"],
)
NAMED = st.dictionaries(st.sampled_from(list(HEADERS)), VALUES)


@given(BODIES, NAMED, st.lists(SECRETS, min_size=1, max_size=3), VALUES)
def test_the_detective_survives_whatever_it_is_shown(
    body: bytes, headers: dict[str, str], secrets: list[str], computed: str
) -> None:
    verdict = check(body, headers, secrets, now=NOW)
    right, words = explain(computed, body, headers, secrets)

    assert verdict.verifies or verdict.reason
    assert words
    assert right == words[0].startswith("This is right")
