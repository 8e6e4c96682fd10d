"""Anomalies: what a person has to look at, and what they can do about it."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest

from tempa.settlement.anomalies import RAW_SHOWN_BYTES, NewAnomaly
from tempa.settlement.inbox import InboxEnding, InboxState
from tempa.settlement.reasons import REASONS
from tempa.testing.contracts.settlement_steps import a_quote, a_signature, an_instance, heard, pay
from tests.integration.api.renting import Renting

if TYPE_CHECKING:
    import httpx2

    from tempa.testing.contracts.bench import StoreBench
    from tests.integration.api.conftest import Served

PATH = "/v1/payments/anomalies"
UNKNOWN = "ano_00000000000000000000000000"


@pytest.fixture
def renting(served: Served) -> Renting:
    return Renting(served)


@pytest.fixture
def bench(renting: Renting) -> StoreBench:
    return renting.bench


async def listed(http: httpx2.AsyncClient) -> list[dict[str, Any]]:
    answer = await http.get(PATH)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_each_has_what_came_why_and_what_to_do(http: httpx2.AsyncClient, bench: StoreBench) -> None:
    signature = a_signature()
    await bench.store.take_in(heard(signature))  # its bytes are no UTF-8
    ending = InboxEnding(
        signature=signature, state=InboxState.PENDING, reason="nodes_disagree", detail="a: 5, b: 6"
    )
    await bench.store.settle_inbox([ending])
    await bench.store.settle_inbox([ending])

    (shown,) = await listed(http)

    assert (shown["reason"], shown["error_trace"]) == ("nodes_disagree", "a: 5, b: 6")
    assert shown["message"] == REASONS["nodes_disagree"].words
    assert (shown["signature"], shown["count"], shown["resolved_at"]) == (signature, 2, None)
    assert shown["raw_encoding"] == "base64"
    assert base64.b64decode(shown["raw_payload"]) == heard(signature).raw
    assert shown["raw_size_bytes"] == len(heard(signature).raw)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b'{"a": 1}', '{"a": 1}'),
        ("Nº\0".encode(), "Nº\0"),
        (b"", ""),
        (None, None),
        ("é".encode() * RAW_SHOWN_BYTES, "é" * (RAW_SHOWN_BYTES // 2)),
        (b"a" + "é".encode() * RAW_SHOWN_BYTES, "a" + "é" * (RAW_SHOWN_BYTES // 2 - 1)),
    ],
    ids=["json", "text", "empty", "none", "long", "cut within a character"],
)
async def test_what_is_text_is_shown_as_text(
    http: httpx2.AsyncClient, bench: StoreBench, raw: bytes | None, shown: str | None
) -> None:
    await bench.store.note_anomaly(NewAnomaly(key="k", reason="call_unreadable", raw=raw))

    (first,) = await listed(http)
    whole = (await http.get(f"{PATH}/{first['id']}")).json()

    assert first["raw_payload"] == shown
    assert whole["raw_payload"] == (None if raw is None else raw.decode())
    assert {first["raw_encoding"], whole["raw_encoding"]} == {None if raw is None else "utf-8"}


async def test_they_come_newest_first_by_the_page(http: httpx2.AsyncClient, bench: StoreBench) -> None:
    for number in range(5):
        await bench.store.note_anomaly(NewAnomaly(key=f"k{number}", reason="call_forged", detail=str(number)))

    first = (await http.get(PATH, params={"limit": 3})).json()
    rest = (await http.get(PATH, params={"limit": 3, "cursor": first["next_cursor"]})).json()

    assert [one["error_trace"] for one in first["items"] + rest["items"]] == ["4", "3", "2", "1", "0"]
    assert rest["next_cursor"] is None


async def test_a_lookup_is_tried_again(http: httpx2.AsyncClient, bench: StoreBench) -> None:
    signature = a_signature()
    await bench.store.take_in(heard(signature))
    ending = InboxEnding(signature=signature, state=InboxState.TERMINAL, reason="nothing_received")
    await bench.store.settle_inbox([ending])
    (shown,) = await listed(http)

    answer = await http.post(f"{PATH}/{shown['id']}/redrive")

    assert (answer.status_code, answer.json()["outcome"]) == (200, "requeued")
    assert [claim.signature for claim in await bench.store.claim_inbox(5, 30)] == [signature]


async def test_money_that_waited_is_given_when_nothing_is_in_its_way(
    http: httpx2.AsyncClient, bench: StoreBench
) -> None:
    gpu = await an_instance(bench)
    quote = await a_quote(bench, gpu)
    await bench.store.suspend_instance(gpu)
    await pay(bench, quote, 7_200)
    (shown,) = await listed(http)
    path = f"{PATH}/{shown['id']}/redrive"

    waiting = (await http.post(path)).json()
    await bench.store.resume_instance(gpu)
    credited = (await http.post(path, json={})).json()
    again = await http.post(path)

    assert (waiting["outcome"], REASONS["instance_suspended"].words in waiting["message"]) == (
        "waiting",
        True,
    )
    assert credited["outcome"] == "credited"
    assert (again.status_code, again.json()["code"]) == (409, "CONFLICT")
    assert await listed(http) == []


async def test_a_call_cannot_be_tried_again_and_says_so(http: httpx2.AsyncClient, bench: StoreBench) -> None:
    await bench.store.note_anomaly(NewAnomaly(key="k", reason="call_forged"))
    (shown,) = await listed(http)

    answer = (await http.post(f"{PATH}/{shown['id']}/redrive")).json()

    assert (answer["outcome"], REASONS["call_forged"].words in answer["message"]) == ("waiting", True)


async def test_a_person_gives_money_to_a_quote(http: httpx2.AsyncClient, bench: StoreBench) -> None:
    quote = await a_quote(bench, await an_instance(bench))
    receipt = await pay(bench, None, 7_200)
    (shown,) = await listed(http)
    body = {"resolution": "Call of Ana, 3 May", "quote_id": quote.id}

    answer = await http.post(f"{PATH}/{shown['id']}/resolve", json=body)

    assert answer.status_code == 200
    assert (answer.json()["resolution"], answer.json()["resolved_at"] is None) == (
        "Call of Ana, 3 May",
        False,
    )
    (recorded,) = await bench.store.receipts_of(receipt.signature)
    assert [given.quote_id for given in recorded.allocations] == [quote.id]
    assert await listed(http) == []


async def test_money_is_given_to_no_quote_that_is_not_there(
    http: httpx2.AsyncClient, bench: StoreBench
) -> None:
    await pay(bench, None, 7_200)
    (shown,) = await listed(http)
    body = {"resolution": "to nobody", "quote_id": "quo_unknown"}

    answer = await http.post(f"{PATH}/{shown['id']}/resolve", json=body)

    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert answer.json()["detail"] == "There is no quote quo_unknown."
    assert len(await listed(http)) == 1


async def test_of_two_who_resolve_at_once_one_does(http: httpx2.AsyncClient, bench: StoreBench) -> None:
    """Nobody is told that money was given which somebody else has just sent back."""
    quote = await a_quote(bench, await an_instance(bench))
    await pay(bench, None, 7_200)
    (shown,) = await listed(http)
    path = f"{PATH}/{shown['id']}/resolve"
    bodies = [{"resolution": "done"}, {"resolution": "done", "quote_id": quote.id}]

    answers = await asyncio.gather(*(http.post(path, json=body) for body in bodies * 4))

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    winner = next(number for number, answer in enumerate(answers) if answer.status_code == 200)
    found = await bench.store.quote(quote.account, quote.id)
    assert found is not None
    assert found.paid == (7_200 if winner % 2 else 0)


BAD = [
    {},
    {"resolution": ""},
    {"resolution": "a\nb"},
    {"resolution": "x" * 501},
    {"resolution": "ok", "quote_id": 5},
    {"resolution": "ok", "amount": "5"},
]


@pytest.mark.parametrize("body", BAD, ids=lambda body: str(body)[:40])
async def test_a_resolution_is_some_words(http: httpx2.AsyncClient, bench: StoreBench, body: Any) -> None:
    await bench.store.note_anomaly(NewAnomaly(key="k", reason="call_forged"))
    (shown,) = await listed(http)

    answer = await http.post(f"{PATH}/{shown['id']}/resolve", json=body)

    assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_REQUEST")


@pytest.mark.parametrize("anomaly_id", [UNKNOWN, "nonsense", "quo_" + UNKNOWN[4:]])
async def test_what_is_not_there_is_not_found(http: httpx2.AsyncClient, anomaly_id: str) -> None:
    path = f"{PATH}/{anomaly_id}"
    answers = [
        await http.get(path),
        await http.post(f"{path}/redrive"),
        await http.post(f"{path}/resolve", json={"resolution": "ok"}),
    ]

    assert [answer.status_code for answer in answers] == [404] * 3


@pytest.mark.parametrize("scopes", [("payments",), ("admin",)])
async def test_they_are_the_operators_alone(
    renting: Renting, bench: StoreBench, scopes: tuple[str, ...]
) -> None:
    """An account's own administrator is not the operator."""
    await bench.store.note_anomaly(NewAnomaly(key="k", reason="call_forged"))
    (anomaly,) = await bench.store.anomalies(1, None)
    path = f"{PATH}/{anomaly.id}"
    async with renting.client(*scopes, account="acme") as client:
        answers = [
            await client.get(PATH),
            await client.get(path),
            await client.post(f"{path}/redrive"),
            await client.post(f"{path}/resolve", json={"resolution": "ok"}),
        ]

    assert [answer.status_code for answer in answers] == [403] * 4
