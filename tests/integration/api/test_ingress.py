"""The payments' ingress over real HTTP: what is told is on disk before it is answered, whoever tells it."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import TYPE_CHECKING, Any, cast

import pytest

from tempa.core.errors import StoreUnavailable
from tempa.settlement.inbox import InboxState
from tempa.testing.devchain.blocks import Commitment
from tempa.testing.devchain.chain import DevChain
from tempa.testing.devchain.couriers import Hook
from tempa.testing.devchain.instructions import memo, pay_sol
from tests.integration.api.hearing import (
    OTHER,
    PREVIOUS,
    SECRET,
    SOURCES,
    Ingress,
    a_signature,
    as_json,
    generic_headers,
    problem,
    quicknode_headers,
    signed,
    taken,
    telling,
)

if TYPE_CHECKING:
    from tests.integration.api.conftest import Served

SECONDS = 10


@pytest.mark.parametrize("source", SOURCES)
async def test_what_is_told_is_in_the_inbox_and_told_again_is_a_duplicate(
    ingress: Ingress, source: str
) -> None:
    one, two = a_signature(), a_signature()

    assert taken(await ingress.tell(source, one)) == (1, 0, 0)
    assert taken(await ingress.tell(source, one, two)) == (1, 1, 0)
    assert taken(await ingress.tell(source, two, one)) == (0, 2, 0)

    (entry,) = await ingress.inbox(one)
    assert (entry.source, entry.state) == (source, InboxState.PENDING)
    assert ingress.counted == {(source, "accepted"): 2, (source, "duplicate"): 1}
    assert await ingress.anomalies() == []


async def test_no_api_key_is_asked_for_and_none_helps(served: Served, ingress: Ingress) -> None:
    key = f"Bearer {served.secret}"
    refused = await ingress.post("helius", telling("helius", a_signature()), authorization=key)

    assert problem(refused) == (401, "not-authentic")
    assert "www-authenticate" in refused.headers


@pytest.mark.parametrize("source", SOURCES)
async def test_both_secrets_hold_while_they_rotate_and_no_other(ingress: Ingress, source: str) -> None:
    body = telling(source, a_signature())

    by = {
        secret: await ingress.post(source, body, **signed(source, body, secret))
        for secret in (SECRET, PREVIOUS)
    }
    other = await ingress.post(source, body, **signed(source, body, OTHER))

    assert [taken(answer) for answer in by.values()] == [(1, 0, 0), (0, 1, 0)]
    assert problem(other) == (401, "not-authentic")
    assert "secret" not in other.json()["detail"].replace("The secret or signature", "")  # no word of which


@pytest.mark.parametrize("source", ["discord", "websocket", "sweep", "x" * 300])
async def test_whoever_is_no_source_here_finds_nothing(ingress: Ingress, source: str) -> None:
    answer = await ingress.client.post(f"/v1/payments/ingress/{source}", content=b"{}")

    assert problem(answer) == (404, "not-found")


async def test_a_source_without_a_secret_finds_nothing(served: Served) -> None:
    """As it is set up by default."""
    answer = await served.client().post(
        "/v1/payments/ingress/helius", content=b"[]", headers={"authorization": ""}
    )

    assert problem(answer) == (404, "not-found")


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "GZIP"])
async def test_a_packed_body_is_signed_as_it_unpacks(ingress: Ingress, coding: str) -> None:
    body = telling("quicknode", a_signature())
    packed = zlib.compress(body) if coding == "deflate" else gzip.compress(body)
    headers = {**quicknode_headers(body), "content-encoding": coding}

    assert taken(await ingress.post("quicknode", packed, **headers)) == (1, 0, 0)


async def test_an_entry_without_a_transaction_harms_no_neighbour_and_is_kept(ingress: Ingress) -> None:
    """Helius sends such at times."""
    one, two = a_signature(), a_signature()
    entries: list[Any] = [{"signature": one}, {"blockTime": 5, "meta": {}}, None, {"signature": two}]
    body = as_json(entries)

    assert taken(await ingress.post("helius", body)) == (2, 0, 2)

    found = await ingress.anomalies()
    assert {(each.reason, each.raw) for each in found} == {("entry_unreadable", body)}
    assert [each.detail.partition(":")[0] for each in reversed(found)] == ["/1", "/2"]
    assert len(await ingress.inbox(one)) == len(await ingress.inbox(two)) == 1


async def test_an_unknown_shape_is_searched_through(ingress: Ingress) -> None:
    signature = a_signature()

    body = as_json({"data": {"blocks": [{"txs": [{"txSignature": signature}]}]}, "metadata": None})

    assert taken(await ingress.post("quicknode", body)) == (1, 0, 0)


async def test_a_memo_of_odd_characters_stops_nobodys_batch(ingress: Ingress) -> None:
    """A payer chooses the memo, and would choose who else is heard."""
    theirs, ours = a_signature(), a_signature()
    body = as_json([{"signature": theirs, "description": "\0 \ud800"}, {"signature": ours, "slot": 2**63}])
    assert b"\\u0000" in body
    assert b"\\ud800" in body

    assert taken(await ingress.post("helius", body)) == (2, 0, 0)


async def test_of_64_posts_of_one_signature_at_once_one_is_accepted_by_each_source(ingress: Ingress) -> None:
    signature = a_signature()

    answers = await asyncio.gather(
        *(ingress.tell(source, signature) for source in SOURCES for _ in range(64))
    )

    came = [taken(answer) for answer in answers]
    assert [sum(column) for column in zip(*came, strict=True)] == [3, 3 * 63, 0]
    assert {entry.source for entry in await ingress.inbox(signature)} == set(SOURCES)
    assert len(await ingress.inbox(signature)) == 3


async def test_a_nonce_is_good_once_and_its_replay_is_counted(ingress: Ingress) -> None:
    body = telling("quicknode", a_signature(), a_signature())
    headers = quicknode_headers(body)

    answers = [await ingress.post("quicknode", body, **headers) for _ in range(3)]

    assert [taken(answer) for answer in answers] == [(2, 0, 0), (0, 2, 0), (0, 2, 0)]
    assert ingress.counted == {("quicknode", "accepted"): 1, ("quicknode", "replayed"): 2}
    (anomaly,) = await ingress.anomalies()
    assert (anomaly.reason, anomaly.source, anomaly.raw) == ("call_replayed", "quicknode", body)


async def test_a_message_that_is_sent_again_is_no_anomaly_unless_it_tells_of_something_new(
    ingress: Ingress,
) -> None:
    """Standard Webhooks: a second try has the first one's id."""
    one, two = a_signature(), a_signature()
    body, other = telling("generic", one), telling("generic", one, two)
    headers = generic_headers(body, name="msg_again")

    answers = [await ingress.post("generic", body, **headers) for _ in range(3)]
    assert [taken(answer) for answer in answers] == [(1, 0, 0), (0, 1, 0), (0, 1, 0)]
    assert ingress.counted == {("generic", "accepted"): 1, ("generic", "replayed"): 2}
    assert await ingress.anomalies() == []

    changed = await ingress.post("generic", other, **generic_headers(other, name="msg_again"))
    assert taken(changed) == (1, 1, 0)
    assert len(await ingress.inbox(two)) == 1
    assert [each.reason for each in await ingress.anomalies()] == ["call_replayed"]


async def test_what_cannot_be_stored_is_not_said_to_be(served: Served) -> None:
    """The provider tries again, and it is there then."""
    full = Full(served.store)
    ingress = Ingress.of(served, cast("Any", full))
    signature = a_signature()

    refused = await ingress.tell("helius", signature)

    assert problem(refused) == (503, "store-unavailable")
    assert int(refused.headers["retry-after"]) >= 1
    assert ingress.counted == {("helius", "unavailable"): 1}
    full.is_full = False
    assert taken(await ingress.tell("helius", signature)) == (1, 0, 0)


class Full:
    """The server's store, on a disk without room."""

    def __init__(self, store: Any) -> None:
        self._store, self.is_full = store, True

    async def take_in(self, incoming: Any) -> Any:
        if self.is_full:
            raise StoreUnavailable
        return await self._store.take_in(incoming)


MAKERS = {
    "helius-raw": "helius",
    "helius-enhanced": "helius",
    "quicknode": "quicknode",
    "quicknode-gzip": "quicknode",
    "generic": "generic",
}


@pytest.mark.parametrize("maker", MAKERS)
async def test_what_lands_on_the_chain_is_heard_from_each_provider(ingress: Ingress, maker: str) -> None:
    url = f"{ingress.served.url}/v1/payments/ingress/{MAKERS[maker]}"
    async with DevChain() as chain:
        hook = Hook(url=url, source=maker, secret=SECRET, commitment=Commitment.PROCESSED, copies=2, batch=2)
        courier = chain.post_to(hook)
        paid = [
            chain.payer.send(memo(str(lamports)), pay_sol(chain.payer.key, chain.treasury.key, lamports))
            for lamports in (1, 2, 3)
        ]
        async with asyncio.timeout(SECONDS):
            await courier.is_idle.wait()

        assert all(parcel.accepted for parcel in courier.parcels)
        entries = [await ingress.inbox(signature) for signature in paid]
        assert [[entry.source for entry in told] for told in entries] == [[MAKERS[maker]]] * 3
