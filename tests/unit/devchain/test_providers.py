"""Posts are what providers send: the signature holds by an independent check, and the shapes are theirs."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from solders.rpc.responses import GetTransactionResp
from standardwebhooks import Webhook

from tempa.testing.devchain.fixtures import landed
from tempa.testing.devchain.fixtures.deliveries import Delivery, deliveries
from tempa.testing.devchain.providers import MAKERS, Stamp

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SECRETS = {"helius": "Bearer helius-secret", "quicknode": "stream-token", "generic": SECRET}
NOW = 1_790_000_000
BY_NAME = landed()


def made(maker: str, *names: str, secret: str = SECRET) -> Any:
    return MAKERS[maker]([BY_NAME[name] for name in names], secret, Stamp(NOW, "nonce-1"))


def stream_signature(delivery: Delivery) -> str:
    headers, body = delivery.post.headers, delivery.post.body
    plain = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
    signed = headers["x-qn-nonce"].encode() + headers["x-qn-timestamp"].encode() + plain
    return hmac.new(SECRETS["quicknode"].encode(), signed, hashlib.sha256).hexdigest()


def test_the_generic_post_holds_by_the_official_verifier() -> None:
    now = int(datetime.now(UTC).timestamp())
    one, two = BY_NAME["sol-legacy"], BY_NAME["sol-v1"]
    for batch, told in (
        ([one], {"signature": one.signature}),
        ([one, two], {"signatures": [one.signature, two.signature]}),
    ):
        post = MAKERS["generic"](batch, SECRET, Stamp(now, "nonce-1"))
        assert Webhook(SECRET).verify(post.body, dict(post.headers)) == told


def test_a_raw_entry_is_an_answer_that_a_strict_reader_takes() -> None:
    entries = json.loads(made("helius-raw", "sol-v0", "alt-only-treasury", "failed-ix0").body)
    for entry in entries:
        read = GetTransactionResp.from_json(json.dumps({"jsonrpc": "2.0", "id": 1, "result": entry}))
        assert isinstance(read, GetTransactionResp), read
        assert read.value is not None
        assert read.value.slot == entry["slot"]

    assert entries[1]["meta"]["loadedAddresses"]["writable"]
    assert entries[2]["meta"]["err"] is not None


def test_an_enhanced_entry_tells_floats_beside_the_exact_change() -> None:
    (entry,) = json.loads(made("helius-enhanced", "spl-checked-ref-memo").body)
    (transfer,) = entry["tokenTransfers"]
    changes = [change for row in entry["accountData"] for change in row["tokenBalanceChanges"]]

    assert transfer["tokenAmount"] == 2.5
    assert sorted(change["rawTokenAmount"]["tokenAmount"] for change in changes) == ["-2500000", "2500000"]
    assert sum(row["nativeBalanceChange"] for row in entry["accountData"]) == -entry["fee"]


def test_enhanced_posts_leave_failures_out_and_see_no_batch() -> None:
    entries = json.loads(made("helius-enhanced", "failed-ix0", "p-token-batch").body)

    assert [entry["signature"] for entry in entries] == [BY_NAME["p-token-batch"].signature]
    assert entries[0]["tokenTransfers"] == []


def test_helius_sends_its_secret_as_it_is() -> None:
    assert made("helius-raw", "sol-v0", secret="Bearer x").headers["authorization"] == "Bearer x"


@pytest.mark.parametrize("maker", ["quicknode", "quicknode-gzip"])
def test_a_stream_names_its_range(maker: str) -> None:
    post = made(maker, "sol-legacy", "late")
    body = json.loads(gzip.decompress(post.body) if "gzip" in maker else post.body)
    slots = [BY_NAME[name].slot for name in ("sol-legacy", "late")]

    assert [body["metadata"][name] for name in ("batch_start_range", "batch_end_range")] == slots
    assert [int(post.headers[name]) for name in ("batch-start-range", "batch-end-range")] == slots
    assert len(body["data"]) == 2


def test_every_delivery_is_signed_but_the_forged_ones() -> None:
    made_now = deliveries(SECRETS, NOW)
    streams = [delivery for delivery in made_now if delivery.source == "quicknode"]
    assert len(made_now) == len(BY_NAME) * 5 + 6
    for delivery in streams:
        if delivery.name == "gzip-bomb":
            continue
        holds = delivery.post.headers["x-qn-signature"] == stream_signature(delivery)
        assert holds is not delivery.is_refused, delivery.name


def test_a_spoiled_post_names_what_is_whole() -> None:
    by_name = {delivery.name: delivery for delivery in deliveries(SECRETS, NOW)}
    missing = by_name["entry-without-transaction"]
    entries = json.loads(missing.post.body)

    assert [("transaction" in entry) for entry in entries] == [True, False, True]
    assert missing.signatures == tuple(entries[at]["transaction"]["signatures"][0] for at in (0, 2))
    assert len(by_name["1-of-25-broken"].signatures) == 24
    assert len(json.loads(by_name["1-of-25-broken"].post.body)) == 25
    assert len(by_name["gzip-bomb"].post.body) < 128 * 1024
