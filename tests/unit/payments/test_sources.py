"""Who tells of payments: forgeries are told from calls, and signatures are taken out of any shape."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Any

import hypothesis.strategies as st
import pytest
import standardwebhooks
from hypothesis import given

from tempa.adapters.payments.generic import Generic
from tempa.adapters.payments.helius import Helius
from tempa.adapters.payments.quicknode import QuickNode
from tempa.core import base58
from tempa.settlement.ingress import SIGNATURES_MAX, Call, NotAuthentic, Source

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
UNIX = str(int(NOW.timestamp()))
SECRET = "whsec_" + "c2VjcmV0" * 4
OLD = "whsec_" + "b2xkb2xk" * 4
SOURCES: list[Source] = [Helius(), QuickNode(), Generic()]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=90),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


def signature(number: int) -> str:
    return base58.encode(hashlib.sha512(bytes([number])).digest())


S1, S2, S3 = (signature(number) for number in range(3))


def quicknode(body: bytes, *, secret: str = SECRET, nonce: str = "n1", at: str = UNIX) -> Call:
    mac = hmac.new(secret.encode(), nonce.encode() + at.encode() + body, hashlib.sha256).hexdigest()
    return Call({"x-qn-nonce": nonce, "x-qn-timestamp": at, "x-qn-signature": mac}, body, NOW)


def generic(body: bytes, *, secret: str = SECRET, at: datetime = NOW) -> Call:
    """Signed by the standard's own library."""
    made = standardwebhooks.Webhook(secret).sign("msg_1", at, body.decode())
    stamp = str(int(at.timestamp()))
    return Call({"webhook-id": "msg_1", "webhook-timestamp": stamp, "webhook-signature": made}, body, NOW)


def helius(authorization: str) -> Call:
    return Call({"authorization": authorization}, b"[]", NOW)


@pytest.mark.parametrize("secrets", [[SECRET], [OLD, SECRET], [SECRET, OLD]], ids=["one", "new", "old"])
def test_a_call_of_the_providers_passes_with_any_secret_in_force(secrets: list[str]) -> None:
    assert Helius().check(helius(SECRET), secrets) is None
    assert Helius().check(helius(f"Bearer {SECRET}"), secrets) is None
    assert QuickNode().check(quicknode(b"{}"), secrets) == "n1"
    assert Generic().check(generic(b"{}"), secrets) == "msg_1"


FORGERIES: dict[str, tuple[Source, Call]] = {
    "helius without": (Helius(), helius("")),
    "helius wrong": (Helius(), helius("whsec_no")),
    "helius with more": (Helius(), helius(SECRET + "x")),
    "helius not ascii": (Helius(), helius("sécret")),
    "quicknode wrong": (QuickNode(), quicknode(b"{}", secret="no")),
    "quicknode old": (QuickNode(), quicknode(b"{}", at=str(int(UNIX) - 301))),
    "quicknode ahead": (QuickNode(), quicknode(b"{}", at=str(int(UNIX) + 301))),
    "quicknode no time": (QuickNode(), quicknode(b"{}", at="")),
    "quicknode odd time": (QuickNode(), quicknode(b"{}", at="1e9")),
    "quicknode no nonce": (QuickNode(), quicknode(b"{}", nonce="")),
    "quicknode endless nonce": (QuickNode(), quicknode(b"{}", nonce="n" * 129)),
    "quicknode altered": (QuickNode(), Call(quicknode(b"{}").headers, b"[]", NOW)),
    "generic wrong": (Generic(), generic(b"{}", secret=OLD)),
    "generic old": (Generic(), generic(b"{}", at=datetime(2026, 11, 30, 11, 54, tzinfo=UTC))),
    "generic altered": (Generic(), Call(generic(b"{}").headers, b"[]", NOW)),
    "generic bare": (Generic(), Call({}, b"{}", NOW)),
}


@pytest.mark.parametrize(("source", "call"), FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forgery_does_not_pass(source: Source, call: Call) -> None:
    with pytest.raises(NotAuthentic):
        source.check(call, [SECRET])


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_without_a_secret_nobody_passes(source: Source) -> None:
    calls = {"helius": helius(""), "quicknode": quicknode(b"{}"), "generic": generic(b"{}")}
    with pytest.raises(NotAuthentic):
        source.check(calls[source.name], [])


def test_milliseconds_are_a_time_too() -> None:
    assert QuickNode().check(quicknode(b"{}", at=UNIX + "000"), [SECRET]) == "n1"


RAW = {"slot": 7, "transaction": {"signatures": [S1, S2], "message": {}}, "meta": {}}
ENHANCED = {"signature": S2, "nativeTransfers": [{"amount": 10**9}], "type": "TRANSFER"}


def test_helius_raw_and_enhanced_entries_are_named_by_their_transaction() -> None:
    heard = Helius().hear([RAW, ENHANCED])
    assert heard.signatures == (S1, S2)
    assert heard.rejected == ()


def test_a_broken_entry_harms_no_neighbour() -> None:
    heard = Helius().hear([RAW, {"slot": 7, "meta": {}}, ENHANCED, None, 7, {"signature": "short"}])
    assert heard.signatures == (S1, S2)
    assert [entry.place for entry in heard.rejected] == ["/1", "/3", "/4", "/5"]


def test_an_unknown_shape_is_searched_through() -> None:
    assert Helius().hear({"events": [{"tx": {"txSignature": S3}}]}).signatures == (S3,)
    data = {"data": [[{"transaction": {"signatures": [S1, S2]}}], {"matched": {"signature": S3}}]}
    assert set(QuickNode().hear(data).signatures) == {S1, S3}


def test_generic_takes_one_or_many_each_once() -> None:
    heard = Generic().hear({"signature": S1, "signatures": [S2, S1, "no", S3]})
    assert heard.signatures == (S1, S2, S3)
    assert [entry.place for entry in heard.rejected] == ["/signatures/3"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
@given(document=JSON)
def test_whatever_comes_is_heard_or_rejected_and_never_a_fault(source: Source, document: Any) -> None:
    heard = source.hear(document)
    assert all(base58.is_signature(one) for one in heard.signatures)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_a_call_without_end_is_bounded(source: Source) -> None:
    wide = [
        {"signature": base58.encode(number.to_bytes(64, "big"))} for number in range(1, SIGNATURES_MAX + 9)
    ]
    document: Any = {"signatures": [one["signature"] for one in wide]} if source.name == "generic" else wide
    heard = source.hear(document)

    assert len(heard.signatures) == SIGNATURES_MAX
    assert [f"more than {SIGNATURES_MAX}" in one.reason for one in heard.rejected] == [True]
    deep: Any = {"signature": S1}
    for _ in range(20_000):
        deep = {"inner": [deep]}
    source.hear(deep)
