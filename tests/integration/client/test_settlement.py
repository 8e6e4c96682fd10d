"""Both clients rent and pay on a real server."""

from __future__ import annotations

import asyncio
import csv
import inspect
import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tempa.client import AsyncClient, Client, NotAuthorized, TempaProblem
from tempa.testing.contracts.settlement_steps import MINT, an_address, pay
from tests.integration.api.conftest import Served, served  # noqa: F401 - a fixture
from tests.integration.api.renting import PRICES, Renting
from tests.integration.api.test_treasury import STANDING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tempa.settlement.model import Receipt


class Blocking:
    """Calls `Client` in a thread, as the server runs in this one."""

    def __init__(self, url: str, key: str) -> None:
        self._client = Client(url, key)

    async def __call__(self, name: str, *args: Any, **options: Any) -> Any:
        return await asyncio.to_thread(self._call, name, *args, **options)

    def _call(self, name: str, *args: Any, **options: Any) -> Any:
        given = getattr(self._client, name)(*args, **options)
        return list(given) if inspect.isgenerator(given) else given

    async def close(self) -> None:
        self._client.close()


class Awaited:
    """Calls `AsyncClient`."""

    def __init__(self, url: str, key: str) -> None:
        self._client = AsyncClient(url, key)

    async def __call__(self, name: str, *args: Any, **options: Any) -> Any:
        given = getattr(self._client, name)(*args, **options)
        return [one async for one in given] if inspect.isasyncgen(given) else await given

    async def close(self) -> None:
        await self._client.close()


Caller = Blocking | Awaited


@pytest.fixture
def renting(served: Served) -> Renting:  # noqa: F811 - the fixture
    return Renting(served)


@pytest.fixture(params=[Blocking, Awaited])
async def tempa(request: pytest.FixtureRequest, renting: Renting) -> AsyncIterator[Caller]:
    make: Callable[[str, str], Caller] = request.param
    caller = make(renting.served.url, await renting.new_key())
    yield caller
    await caller.close()


async def paid(renting: Renting, quote_id: str, amount: int) -> Receipt:
    return await renting.pay({"quote_id": quote_id}, amount)


async def test_an_instance_is_offered_quoted_paid_and_rented(tempa: Caller, renting: Renting) -> None:
    gpu = await tempa("add_gpu_instance", "H200", PRICES)
    quote = await tempa("ask_quote", gpu.id, MINT, 3_600)
    receipt = await paid(renting, quote.quote_id, 7_200)

    after = await tempa("quote", quote.quote_id)
    rented = await tempa("gpu_instance", gpu.id)

    assert (gpu.status, quote.status, quote.amount) == ("AVAILABLE", "open", "7200")
    assert (after.status, after.granted_seconds, after.signature) == ("credited", 3_600, receipt.signature)
    assert (rented.status, rented.renter) == ("ACTIVE", "default")
    assert (await tempa("payment", receipt.signature)).status == "credited"


async def test_lists_are_read_whole_or_as_far_as_asked_for(tempa: Caller) -> None:
    instances = [await tempa("add_gpu_instance", f"H200 {number}", PRICES) for number in range(3)]
    quotes = [await tempa("ask_quote", instances[0].id, "SOL", seconds) for seconds in (1, 2, 3)]

    assert await tempa("gpu_instances") == instances
    assert await tempa("gpu_instances", limit=2) == instances[:2]
    assert await tempa("quotes") == quotes[::-1]
    assert await tempa("quotes", limit=1) == quotes[-1:]


async def test_the_operator_changes_suspends_and_resumes(tempa: Caller) -> None:
    gpu = await tempa("add_gpu_instance", "H200", PRICES)

    changed = await tempa("change_prices", gpu.id, PRICES[:1])
    suspended = await tempa("suspend_gpu_instance", gpu.id)
    with pytest.raises(TempaProblem) as refused:
        await tempa("ask_quote", gpu.id, "SOL", 60)
    resumed = await tempa("resume_gpu_instance", gpu.id)

    assert [price.asset for price in changed.prices] == ["SOL"]
    assert (suspended.status, resumed.status) == ("SUSPENDED", "AVAILABLE")
    assert (refused.value.status, refused.value.slug) == (409, "instance-suspended")


async def test_a_qr_code_comes_as_it_is_drawn(tempa: Caller) -> None:
    gpu = await tempa("add_gpu_instance", "H200", PRICES)
    quote = await tempa("ask_quote", gpu.id, MINT, 60)

    assert (await tempa("quote_qr", quote.quote_id)).startswith(b"<svg ")


async def test_the_ledger_is_read_line_by_line_or_as_a_table(tempa: Caller, renting: Renting) -> None:
    gpu = await tempa("add_gpu_instance", "H200", PRICES)
    quote = await tempa("ask_quote", gpu.id, MINT, 3_600)
    receipts = [await paid(renting, quote.quote_id, amount) for amount in (100, 200, 300)]

    lines = await tempa("ledger")
    table = list(csv.DictReader(io.StringIO((await tempa("ledger_csv")).decode(), newline="")))

    assert [(line.tx_signature, line.amount) for line in lines] == [
        (receipt.signature, str(receipt.amount)) for receipt in receipts
    ]
    assert [row["tx_signature"] for row in table] == [receipt.signature for receipt in receipts]
    assert await tempa("ledger", limit=2, account="*") == lines[:2]
    assert await tempa("ledger", account="acme") == []
    assert len((await tempa("ledger_csv", account="acme")).splitlines()) == 1


async def test_money_that_waits_is_given_to_a_quote(tempa: Caller, renting: Renting) -> None:
    gpu = await tempa("add_gpu_instance", "H200", PRICES)
    quote = await tempa("ask_quote", gpu.id, MINT, 60)
    await pay(renting.bench, None, 120, references=(an_address(),))

    (found,) = await tempa("anomalies")
    again = await tempa("redrive_anomaly", found.id)
    resolved = await tempa(
        "resolve_anomaly", found.id, "The payer has shown the order.", quote_id=quote.quote_id
    )

    assert (found.reason, found.amount, again.outcome) == ("no_reference", "120", "waiting")
    assert resolved.resolution == "The payer has shown the order."
    assert await tempa("anomaly", found.id) == resolved
    assert await tempa("anomalies", limit=5) == []
    assert (await tempa("quote", quote.quote_id)).granted_seconds == 60


async def test_money_that_waits_is_sent_back_or_kept(tempa: Caller, renting: Renting) -> None:
    app = renting.served.app
    app.state.parts = replace(app.state.parts, standing=lambda: STANDING, refunds=True)
    receipt = await pay(renting.bench, None, 120)
    (found,) = await tempa("anomalies")
    wallet = an_address()

    first = await tempa("ask_refund", wallet, anomaly_id=found.id, note="Ana")
    given_up = await tempa("give_up_refund", first.id, "another wallet")
    second = await tempa("ask_refund", wallet, signature=receipt.signature)

    assert (first.state, first.recipient, first.note) == ("requested", wallet, "Ana")
    assert (given_up.state, given_up.reason) == ("failed", "another wallet")
    assert await tempa("refund", second.id) == second
    assert await tempa("refunds") == [second, given_up]
    assert await tempa("refunds", limit=1) == [second]


async def test_what_is_not_there_or_not_allowed_says_so(tempa: Caller, renting: Renting) -> None:
    narrow = type(tempa)(renting.served.url, await renting.new_key("payments"))
    try:
        with pytest.raises(NotAuthorized) as refused:
            await narrow("add_gpu_instance", "H200", PRICES)
    finally:
        await narrow.close()
    with pytest.raises(TempaProblem) as unknown:
        await tempa("quote", "quo_../../keys")

    assert refused.value.slug == "missing-scope"
    assert unknown.value.status == 404
