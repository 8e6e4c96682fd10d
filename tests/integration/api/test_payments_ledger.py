"""`GET /v1/ledger`: what was credited, by the page or as CSV, as the readable view has it."""

from __future__ import annotations

import csv
import io
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from tempa.api import payments
from tempa.core.errors import StoreUnavailable
from tempa.settlement.quotes import PriceOffer
from tempa.settlement.views import LEDGER_COLUMNS
from tempa.testing.contracts.settlement_steps import HOUR, LAMPORTS, MINT, a_quote, an_instance, pay
from tests.integration.api.renting import Renting

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from tempa.testing.contracts.bench import StoreBench
    from tests.integration.api.conftest import Served

PATH = "/v1/ledger"
OURS, THEIRS = "acme", "globex"
SOL = PriceOffer("SOL", 500_000_000, 3_600)


@pytest.fixture
def renting(served: Served) -> Renting:
    return Renting(served)


@pytest.fixture
async def paid(renting: Renting) -> StoreBench:
    """Three credits of ours in two assets, two of theirs, and one that nobody can have."""
    bench = renting.bench
    gpu, other = await an_instance(bench, HOUR, SOL), await an_instance(bench)
    tokens = await a_quote(bench, gpu, account=OURS)
    lamports = await a_quote(bench, gpu, account=OURS, price=SOL.price, treasury=LAMPORTS)
    theirs = await a_quote(bench, other, account=THEIRS)
    for quote, amount in ((tokens, 7_200), (lamports, 500_000_000), (theirs, 20), (tokens, 11), (theirs, 40)):
        await pay(bench, quote, amount)
    await pay(bench, None, 999)
    return bench


def rows_of(database: Path) -> list[dict[str, Any]]:
    """What the view says, read by SQLite alone."""
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    found = connection.execute(
        "select * from gpu_rental_ledger where status = 'CONFIRMED' order by id"
    ).fetchall()
    connection.close()
    return [dict(row) for row in found]


async def all_pages(client: httpx2.AsyncClient, **asked: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = await client.get(PATH, params={**asked, **({"cursor": cursor} if cursor else {})})
        assert answer.status_code == 200, answer.text
        items += answer.json()["items"]
        cursor = answer.json()["next_cursor"]
    return items


async def read_csv(client: httpx2.AsyncClient, **asked: Any) -> list[dict[str, str]]:
    answer = await client.get(PATH, params={"format": "csv", **asked})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    return list(csv.DictReader(io.StringIO(answer.text, newline="")))


async def test_its_columns_are_those_of_the_view_and_it_says_the_same(
    paid: StoreBench, renting: Renting, http: httpx2.AsyncClient, tmp_path: Path
) -> None:
    view = rows_of(tmp_path / "tempa.db")
    assert len(view) == 5
    assert LEDGER_COLUMNS[:10] == tuple(view[0])

    lines = await all_pages(http, account="*")
    cells = await read_csv(http, account="*")

    for row, line, cell in zip(view, lines, cells, strict=True):
        lamports = row["amount_lamports"]
        said = {**row, "amount_lamports": None if lamports is None else str(lamports)}
        assert {name: line[name] for name in row} == said
        assert {name: cell[name] for name in row} == {
            name: "" if value is None else str(value) for name, value in said.items()
        }
    assert [line["amount_lamports"] for line in lines] == [None, "500000000", None, None, None]


async def test_an_account_reads_its_own_page_by_page(paid: StoreBench, renting: Renting) -> None:
    async with renting.client("payments", account=OURS) as client:
        answer = await client.get(PATH, params={"limit": 2})
        lines = await all_pages(client, limit=2)

    assert len(answer.json()["items"]) == 2
    assert [(line["asset"], line["amount"]) for line in lines] == [
        (MINT, "7200"),
        ("SOL", "500000000"),
        (MINT, "11"),
    ]
    assert {line["account"] for line in lines} == {OURS}
    assert [line["rent_seconds_added"] for line in lines] == [3_600, 3_600, 5]


async def test_a_cursor_stays_good_while_the_ledger_grows(paid: StoreBench, renting: Renting) -> None:
    async with renting.client("payments", account=THEIRS) as client:
        first = (await client.get(PATH, params={"limit": 1})).json()
        (quote,) = await paid.store.quotes(THEIRS, 1, None)
        await pay(paid, quote.offer, 60)
        after = await all_pages(client, cursor=first["next_cursor"])
        rest = (await client.get(PATH, params={"cursor": first["next_cursor"]})).json()

    assert [line["amount"] for line in rest["items"]] == ["40", "60"]
    assert rest["next_cursor"] is None
    assert after == rest["items"]


async def test_another_accounts_is_the_operators_to_read_alone(
    paid: StoreBench, renting: Renting, http: httpx2.AsyncClient
) -> None:
    assert [line["amount"] for line in await all_pages(http, account=THEIRS)] == ["20", "40"]
    assert await all_pages(http) == []  # the operator's own
    for scopes in (("payments",), ("admin",)):
        async with renting.client(*scopes, account=OURS) as client:
            for account in (THEIRS, "*"):
                refused = await client.get(PATH, params={"account": account})
                assert (refused.status_code, refused.json()["code"]) == (403, "OPERATOR_ONLY")
            assert len(await all_pages(client, account=OURS)) == 3


async def test_csv_gives_all_of_it_page_by_page(
    paid: StoreBench, renting: Renting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payments, "_CSV_PAGE", 2)
    async with renting.client("payments", account=OURS) as client:
        cells = await read_csv(client)
        empty = await client.head(PATH, params={"format": "csv"})

    assert [cell["amount"] for cell in cells] == ["7200", "500000000", "11"]
    assert list(cells[0]) == list(LEDGER_COLUMNS)
    assert (empty.status_code, empty.content) == (200, b"")


async def test_a_store_that_goes_away_breaks_the_file_off(
    paid: StoreBench, renting: Renting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that only looks whole would be a wrong statement."""
    monkeypatch.setattr(payments, "_CSV_PAGE", 2)
    ledger = renting.served.store.ledger

    async def failing(account: str | None, after: int, limit: int) -> Any:
        if after:
            raise StoreUnavailable
        return await ledger(account, after, limit)

    monkeypatch.setattr(renting.served.store, "ledger", failing)
    async with renting.client("payments", account=OURS) as client:
        with pytest.raises(Exception, match=r"(?i)incomplete|closed|disconnected") as broken:
            await client.get(PATH, params={"format": "csv"})
    assert "Protocol" in type(broken.value).__name__


BAD = [
    {"format": "xml"},
    {"format": "csv", "limit": "5"},
    {"cursor": "nonsense!"},
    {"cursor": "YW5vXzAwMDA"},
    {"limit": "0"},
    {"account": "a b"},
    {"colour": "red"},
]


@pytest.mark.parametrize("asked", BAD, ids=str)
async def test_what_makes_no_sense_is_told(http: httpx2.AsyncClient, asked: dict[str, str]) -> None:
    answer = await http.get(PATH, params=asked)

    assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_REQUEST")
    assert len(answer.json()["errors"]) == 1
