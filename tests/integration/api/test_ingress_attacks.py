"""Calls that mean harm, or are broken: a typed answer, bounded work, and a trace for the operator."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from tempa.api.unpacking import Unpacker
from tempa.core.errors import Refusal
from tempa.settlement.samples import SAMPLE_BYTES
from tests.integration.api.hearing import (
    OTHER,
    SOURCES,
    Ingress,
    a_signature,
    as_json,
    helius_headers,
    problem,
    quicknode_headers,
    signed,
    taken,
    telling,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MIB = 1 << 20


def packed(body: bytes, coding: str = "gzip") -> dict[str, str]:
    return {**helius_headers(), "content-encoding": coding}


async def test_a_body_that_says_it_is_too_large_is_not_read(ingress: Ingress) -> None:
    answer = await ingress.post("helius", b" " * (MIB + 1))

    assert problem(answer) == (413, "body-too-large")
    assert ingress.counted == {("helius", "too_large"): 1}
    (anomaly,) = await ingress.anomalies()
    assert (anomaly.reason, anomaly.source) == ("call_too_large", "helius")


async def test_a_body_that_does_not_say_so_is_cut_off(ingress: Ingress) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield b" " * 65_536

    post = ingress.client.post("/v1/payments/ingress/helius", content=endless(), headers=helius_headers())
    answer = await post

    assert problem(answer) == (413, "body-too-large")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_bomb_does_not_go_off(ingress: Ingress, coding: str) -> None:
    packer = zlib.compressobj(9, wbits=31 if coding == "gzip" else 15)
    bomb = b"".join(packer.compress(bytes(MIB)) for _ in range(512)) + packer.flush()
    assert len(bomb) < MIB

    tracemalloc.start()
    answer = await ingress.post("helius", bomb, **packed(bomb, coding))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert problem(answer) == (413, "body-too-large")
    assert peak_bytes < 12 * MIB  # of a limit of one; the bomb itself is half of that


def test_no_more_than_the_limit_is_ever_unpacked() -> None:
    limit = 1000
    exact = gzip.compress(bytes(limit))
    unpacker = Unpacker("gzip", limit)
    for byte in exact:
        unpacker.take(bytes([byte]))
    assert unpacker.end() == bytes(limit)

    over = Unpacker("gzip", limit)
    with pytest.raises(Refusal) as refused:
        over.take(gzip.compress(bytes(limit + 1)))
    assert refused.value.slug == "body-too-large"
    assert len(over._body) == limit + 1


BROKEN = {
    "no gzip at all": b'[{"signature":"x"}]',
    "ends early": gzip.compress(as_json([]))[:-4],
    "nothing": b"",
    "more behind it": gzip.compress(b"[]") + b"[]",
    "a second one": gzip.compress(b"[") + gzip.compress(b"]"),
    "a wrong checksum": gzip.compress(b"[]")[:-8] + bytes(8),
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
async def test_what_cannot_be_unpacked_is_unreadable(ingress: Ingress, body: bytes) -> None:
    assert problem(await ingress.post("helius", body, **packed(body))) == (400, "unreadable-json")

    (anomaly,) = await ingress.anomalies()
    assert (anomaly.reason, anomaly.raw) == ("call_unreadable", body[:SAMPLE_BYTES])


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "nonsense"])
async def test_another_encoding_is_refused(ingress: Ingress, coding: str) -> None:
    answer = await ingress.post("helius", b"[]", **packed(b"[]", coding))

    assert problem(answer) == (415, "unsupported-media-type")
    assert answer.headers["accept-encoding"] == "gzip, deflate"


UNREADABLE = {
    "nothing": b"",
    "half": b'[{"signature": "',
    "no UTF-8": b'["\xff"]',
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "not a number": b"[NaN]",
    "a key twice": b'[{"signature":"a","signature":"b"}]',
    "not JSON": b"signature=abc",
    "an endless number": b"[" + b"7" * 5_000 + b"]",
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("source", ["helius", "quicknode"])
async def test_an_authentic_call_without_json_is_refused_and_kept_whole(
    ingress: Ingress, source: str, body: bytes
) -> None:
    answers = [await ingress.post(source, body, **signed(source, body)) for _ in range(2)]

    assert [problem(answer) for answer in answers] == [(400, "unreadable-json")] * 2
    assert ingress.counted == {(source, "unreadable"): 2}
    (listed,) = await ingress.anomalies()
    assert (listed.reason, listed.count) == ("call_unreadable", 2)
    whole = await ingress.served.store.anomaly(listed.id)
    assert whole is not None
    assert whole.raw == body


ODD: list[Any] = [
    [],
    {},
    None,
    5,
    "text",
    [[]],
    {"data": None},
    {"signatures": {}},
    {"signature": ["x"]},
    [{"signature": 5}],
]


@pytest.mark.parametrize("document", ODD, ids=json.dumps)
@pytest.mark.parametrize("source", SOURCES)
async def test_any_json_is_taken_and_what_holds_nothing_is_kept(
    ingress: Ingress, source: str, document: Any
) -> None:
    accepted, duplicates, rejected = taken(await ingress.post(source, as_json(document)))

    assert (accepted, duplicates) == (0, 0)
    assert len(await ingress.anomalies()) == rejected


async def test_a_body_of_many_empty_entries_is_work_of_a_moment(ingress: Ingress) -> None:
    body = b"[" + b"{}," * 300_000 + b"{}]"

    async with asyncio.timeout(10):
        accepted, _, rejected = taken(await ingress.post("helius", body))

    assert (accepted, rejected) == (0, 5_001)


async def test_forged_calls_are_refused_counted_and_sampled_not_stored(ingress: Ingress) -> None:
    """A flood of them becomes one write, and the next one tells how many there were."""
    signature = a_signature()
    body = telling("quicknode", signature) + b" " * 10_000
    forged = [ingress.post("quicknode", body, **quicknode_headers(body, OTHER)) for _ in range(50)]

    answers = await asyncio.gather(*forged)

    assert {problem(answer) for answer in answers} == {(401, "not-authentic")}
    assert ingress.counted == {("quicknode", "forged"): 50}
    assert await ingress.inbox(signature) == []
    (anomaly,) = await ingress.anomalies()
    assert (anomaly.reason, anomaly.detail, anomaly.count) == ("call_forged", "wrong signature", 1)
    assert anomaly.raw == body[:SAMPLE_BYTES]


async def test_each_way_of_forging_is_told_apart(ingress: Ingress) -> None:
    body = telling("quicknode", a_signature())
    right = quicknode_headers(body)
    wrong = [
        {**right, "x-qn-timestamp": "1"},
        {**right, "x-qn-nonce": ""},
        {**right, "x-qn-signature": "0" * 64},
    ]

    for headers in wrong:
        await ingress.post("quicknode", body, **headers)

    told = {(each.reason, each.detail) for each in await ingress.anomalies()}
    assert told == {
        ("call_forged", "outside the time window"),
        ("call_forged", "no nonce"),
        ("call_forged", "wrong signature"),
    }


async def test_a_header_that_is_there_twice_is_not_taken_by_half(ingress: Ingress) -> None:
    headers = [("authorization", OTHER), ("authorization", helius_headers()["authorization"])]
    body = telling("helius", a_signature())

    answer = await ingress.client.post("/v1/payments/ingress/helius", content=body, headers=headers)

    assert problem(answer) == (401, "not-authentic")


async def test_secrets_are_in_no_sample(ingress: Ingress) -> None:
    await ingress.post("helius", b"{", **helius_headers())
    await ingress.post("helius", b"{", **helius_headers("almost-" + OTHER))

    for each in await ingress.anomalies():
        assert b"whsec_" not in (each.raw or b"") + each.detail.encode()
