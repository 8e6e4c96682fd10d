"""Refunds by HTTP: who may ask, of what, to whom, and what is refused. Nobody signs anything here."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tempa.settlement.anomalies import NewAnomaly
from tempa.settlement.refunds import Outcome
from tempa.testing.contracts.settlement_refunds import a_signing, leaving, sent
from tempa.testing.contracts.settlement_steps import MINT, a_quote, an_address, an_instance, pay
from tests.integration.api.renting import Renting
from tests.integration.api.test_treasury import STANDING

if TYPE_CHECKING:
    import httpx2

    from tempa.settlement.model import Receipt
    from tempa.settlement.refunds import Refund
    from tempa.testing.contracts.bench import StoreBench
    from tests.integration.api.conftest import Served

PATH = "/v1/payments/refunds"


@pytest.fixture
def renting(served: Served) -> Renting:
    served.app.state.parts = replace(served.app.state.parts, standing=lambda: STANDING, refunds=True)
    return Renting(served)


@pytest.fixture
def bench(renting: Renting) -> StoreBench:
    return renting.bench


async def waiting(bench: StoreBench, amount: int = 700) -> tuple[Receipt, str]:
    """Money that named nobody, and its anomaly."""
    receipt = await pay(bench, None, amount)
    anomalies = await bench.store.anomalies_of(receipt.signature)
    return receipt, anomalies[0].id


async def ask(http: httpx2.AsyncClient, **body: Any) -> httpx2.Response:
    return await http.post(PATH, json={"recipient": an_address(), **body})


async def the_refund(bench: StoreBench, refund_id: str) -> Refund:
    found = await bench.store.refund(refund_id)
    assert found is not None
    return found


async def test_money_of_an_anomaly_is_asked_back_once(http: httpx2.AsyncClient, bench: StoreBench) -> None:
    receipt, anomaly = await waiting(bench)
    wallet = an_address()

    answer = await ask(http, anomaly_id=anomaly, recipient=wallet, note="Ana, by telephone")
    again = await ask(http, anomaly_id=anomaly)

    shown = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (202, f"{PATH}/{shown['id']}")
    assert (shown["state"], shown["amount"], shown["asset"]) == ("requested", "700", MINT)
    assert (shown["recipient"], shown["signature"], shown["anomaly_id"]) == (
        wallet,
        receipt.signature,
        anomaly,
    )
    assert (shown["note"], shown["transactions"], shown["ended_at"]) == ("Ana, by telephone", [], None)
    assert (again.status_code, again.json()["type"]) == (409, "urn:tempa:problem:conflict")
    assert f"refund {shown['id']}" in again.json()["detail"]
    assert [one.id for one in await bench.store.refunds(10, None)] == [shown["id"]]
    assert (await http.get(f"/v1/payments/anomalies/{anomaly}")).json()["resolution"] == (
        f"refund {shown['id']}"
    )


async def test_of_many_who_ask_at_once_one_is_granted(http: httpx2.AsyncClient, bench: StoreBench) -> None:
    _, anomaly = await waiting(bench)

    answers = await asyncio.gather(*(ask(http, anomaly_id=anomaly) for _ in range(8)))

    assert sorted(answer.status_code for answer in answers) == [202, *[409] * 7]
    assert len(await bench.store.refunds(10, None)) == 1


async def test_by_signature_where_one_anomaly_alone_has_its_money(
    http: httpx2.AsyncClient, bench: StoreBench
) -> None:
    receipt, anomaly = await waiting(bench)

    asked = await ask(http, signature=receipt.signature)
    again = await ask(http, signature=receipt.signature)
    unknown = await ask(http, signature="5" * 87)

    assert (asked.status_code, asked.json()["anomaly_id"]) == (202, anomaly)
    assert again.status_code == 409
    assert f"refund {asked.json()['id']}" in again.json()["detail"]
    assert unknown.status_code == 404


async def test_a_payment_whose_money_waits_twice_has_to_be_named_closer(
    http: httpx2.AsyncClient, bench: StoreBench
) -> None:
    receipt, anomaly = await waiting(bench)
    (first,) = await bench.store.anomalies(10, None)
    other = NewAnomaly(
        key="suspense:other",
        reason="no_reference",
        signature=receipt.signature,
        amount=1,
        receipt=first.receipt,
    )
    await bench.store.note_anomaly(other)

    answer = await ask(http, signature=receipt.signature)

    assert answer.status_code == 409
    assert anomaly in answer.json()["detail"]
    assert await bench.store.refunds(10, None) == []


async def test_what_is_not_in_the_ledger_or_is_given_is_not_sent_back(
    http: httpx2.AsyncClient, bench: StoreBench
) -> None:
    await bench.store.note_anomaly(NewAnomaly(key="k", reason="wrapped_sol", amount=5, asset=MINT))
    (stray,) = await bench.store.anomalies(10, None)
    quote = await a_quote(bench, await an_instance(bench))
    credited = await pay(bench, quote, 7_200)

    refused = await ask(http, anomaly_id=stray.id)

    assert (refused.status_code, "moved by hand" in refused.json()["detail"]) == (409, True)
    assert (await ask(http, signature=credited.signature)).status_code == 404
    assert await bench.store.refunds(10, None) == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"anomaly_id": "ano_" + "0" * 26, "signature": "5" * 87}, 422),
        ({"anomaly_id": "ano_" + "0" * 26}, 404),
        ({"anomaly_id": "ano_?"}, 404),
        ({"anomaly_id": "ano_" + "0" * 26, "recipient": "somebody"}, 422),
        ({"anomaly_id": "ano_" + "0" * 26, "recipient": None}, 422),
        ({"anomaly_id": "ano_" + "0" * 26, "recipient": STANDING.wallet}, 422),
        ({"anomaly_id": "ano_" + "0" * 26, "recipient": STANDING.accounts[-1].address}, 422),
        ({"anomaly_id": "ano_" + "0" * 26, "amount": "5"}, 422),
    ],
)
async def test_what_cannot_be_asked_for(
    http: httpx2.AsyncClient, bench: StoreBench, body: dict[str, Any], status: int
) -> None:
    assert (await ask(http, **body)).status_code == status
    assert await bench.store.refunds(10, None) == []


async def test_who_is_paid_has_to_be_named(http: httpx2.AsyncClient, bench: StoreBench) -> None:
    """Where a payment came from is a hint, and nothing is sent by it."""
    _, anomaly = await waiting(bench)

    answer = await http.post(PATH, json={"anomaly_id": anomaly})

    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/recipient")


async def test_while_refunds_are_off_none_can_be_asked_for(
    http: httpx2.AsyncClient, bench: StoreBench, renting: Renting
) -> None:
    _, anomaly = await waiting(bench)
    asked = (await ask(http, anomaly_id=anomaly)).json()["id"]
    _, other = await waiting(bench)
    parts = renting.served.app.state.parts
    renting.served.app.state.parts = replace(parts, refunds=False)

    off = await ask(http, anomaly_id=other)
    given_up = await http.post(f"{PATH}/{asked}/give-up", json={"reason": "off"})
    renting.served.app.state.parts = replace(parts, standing=lambda: None)
    nowhere = await ask(http, anomaly_id=other)

    assert (off.status_code, "payments.refunds = true" in off.json()["detail"]) == (409, True)
    assert (given_up.status_code, (await http.get(PATH)).status_code) == (200, 200)
    assert nowhere.json()["type"] == "urn:tempa:problem:payments-not-configured"


async def test_it_is_followed_to_its_end(http: httpx2.AsyncClient, bench: StoreBench) -> None:
    _, anomaly = await waiting(bench)
    refund_id = (await ask(http, anomaly_id=anomaly)).json()["id"]
    signed = await sent(bench, await the_refund(bench, refund_id))
    path = f"{PATH}/{refund_id}"

    under_way = (await http.get(path)).json()
    kept = await http.post(f"{path}/give-up", json={"reason": "not him"})
    await bench.store.post_credits(leaving(signed, 700))
    await bench.store.end_signing(refund_id, signed.signature, Outcome.FINAL)
    ended = (await http.get(path)).json()
    late = await http.post(f"{path}/give-up", json={"reason": "not him"})

    (transaction,) = under_way["transactions"]
    assert (under_way["state"], transaction["signature"]) == ("broadcast", signed.signature)
    assert (transaction["outcome"], transaction["last_valid_height"]) == (None, 300)
    assert transaction["sent_at"] is not None
    assert "raw" not in transaction
    assert (kept.status_code, "may land" in kept.json()["detail"]) == (409, True)
    assert (ended["state"], ended["transactions"][0]["outcome"]) == ("final", "final")
    assert ended["ended_at"] is not None
    assert (late.status_code, "it is final" in late.json()["detail"]) == (409, True)


async def test_what_is_given_up_waits_again_and_can_be_asked_for_again(
    http: httpx2.AsyncClient, bench: StoreBench
) -> None:
    receipt, anomaly = await waiting(bench)
    first = (await ask(http, anomaly_id=anomaly)).json()["id"]

    given_up = await http.post(f"{PATH}/{first}/give-up", json={"reason": "another wallet"})
    second = await ask(http, signature=receipt.signature)

    assert (given_up.status_code, given_up.json()["state"]) == (200, "failed")
    assert given_up.json()["reason"] == "another wallet"
    assert second.status_code == 202
    assert not await bench.store.keep_signing(first, a_signing())
    assert await bench.store.keep_signing(second.json()["id"], a_signing())


async def test_all_are_listed_newest_first_by_the_page(http: httpx2.AsyncClient, bench: StoreBench) -> None:
    made = [(await ask(http, anomaly_id=(await waiting(bench))[1])).json()["id"] for _ in range(5)]

    first = (await http.get(PATH, params={"limit": 3})).json()
    rest = (await http.get(PATH, params={"limit": 3, "cursor": first["next_cursor"]})).json()

    assert [one["id"] for one in first["items"] + rest["items"]] == made[::-1]
    assert rest["next_cursor"] is None
    assert (await http.get(f"{PATH}/ref_{'0' * 26}")).status_code == 404


async def test_they_are_the_operators_alone(renting: Renting, bench: StoreBench) -> None:
    _, anomaly = await waiting(bench)
    body = {"anomaly_id": anomaly, "recipient": an_address()}
    for scopes, account in ((("payments",), "default"), (("admin",), "other"), (("jobs",), "default")):
        async with renting.client(*scopes, account=account) as client:
            answers = [
                await client.post(PATH, json=body),
                await client.get(PATH),
                await client.get(f"{PATH}/ref_{'0' * 26}"),
                await client.post(f"{PATH}/ref_{'0' * 26}/give-up", json={"reason": "?"}),
            ]
        assert {answer.status_code for answer in answers} == {403}
    assert await bench.store.refunds(10, None) == []
