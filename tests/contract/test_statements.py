"""A statement against the chain: what was credited was paid, and what was not is told line by line."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from tempa.settlement.model import Verdict
from tempa.settlement.quorum import Agreed, Held
from tempa.settlement.statement import Difference, Report, StatementLine, read_line, verify_statement
from tempa.settlement.verify import verify
from tempa.settlement.views import LEDGER_COLUMNS, ledger_view
from tests.contract.shop import LOCK_SECONDS, TERMS, TREASURY, USD, Shop
from tests.contract.test_stores import folder, on_sqlite  # noqa: F401 - a fixture


@pytest.fixture
async def shop(folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[Shop]:  # noqa: F811
    async with on_sqlite(request) as bench:
        yield Shop(bench)


class Nodes:
    """Answers from the shop's chain; counts who asks."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self.asked: list[str] = []
        self.at_once = 0
        self.most_at_once = 0

    async def check(self, signature: str) -> Agreed | Held:
        self.asked.append(signature)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if signature not in self._shop.chain:
            return Held("not_found_yet")
        return Agreed(verify(self._shop.chain[signature], TREASURY, signature), ())


async def rows(shop: Shop, account: str | None = None) -> list[dict[str, Any]]:
    """As `GET /v1/ledger` gives them in JSON."""
    lines = await shop.bench.store.ledger(account, 0, 10_000)
    return [json.loads(json.dumps(ledger_view(line))) for line in lines]


def as_csv(listed: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    text = io.StringIO()
    writer = csv.DictWriter(text, LEDGER_COLUMNS)
    writer.writeheader()
    writer.writerows(listed)
    return [dict(row) for row in csv.DictReader(io.StringIO(text.getvalue()))]


async def lines(listed: Iterable[dict[str, Any]]) -> AsyncIterator[StatementLine | Difference]:
    for place, row in enumerate(listed, start=1):
        yield read_line(place, row)


async def audit(shop: Shop, listed: Iterable[dict[str, Any]], **how: Any) -> Report:
    return await verify_statement(lines(listed), Nodes(shop).check, **how)


def words(report: Report) -> list[str]:
    return [f"{one.place}: {one.words}" for one in report.differences]


async def busy(shop: Shop) -> None:
    """Two accounts, payments in parts, one that is late, one that a person gave."""
    gpu, other = await shop.instance(), await shop.instance()
    mine, theirs = await shop.quote(gpu), await shop.quote(other, account="globex")
    for amount in (601, 1_001, 33):
        await shop.pays(amount, mine)
        await shop.pays(2 * amount, theirs)
    await shop.pays(500)
    (anomaly,) = await shop.bench.store.anomalies(10, None)
    await shop.bench.store.resolve_anomaly(anomaly.id, "Ana called", TERMS, mine.id)
    shop.bench.clock.advance(LOCK_SECONDS + TERMS.lock_tolerance_seconds + 1)
    await shop.pays(777, theirs)


@pytest.mark.parametrize("form", [list, as_csv])
async def test_an_honest_statement_holds(shop: Shop, form: Any) -> None:
    await busy(shop)
    listed = form(await rows(shop))

    report = await audit(shop, listed)

    assert report.holds, words(report)
    assert (report.lines, report.transactions) == (8, 8)
    assert report.sums == {
        ("acme", USD): 601 + 1_001 + 33 + 500,
        ("globex", USD): 2 * (601 + 1_001 + 33) + 777,
    }
    assert report.seconds == {"acme": (601 + 1_001 + 33 + 500) // 2, "globex": (2 * 1_635 + 777) // 2}
    own = await audit(shop, form(await rows(shop, "acme")))
    assert own.holds
    assert own.lines == 4


async def test_a_part_of_a_statement_may_begin_within_a_second(shop: Shop) -> None:
    await busy(shop)
    listed = (await rows(shop, "acme"))[1:]

    whole, part = await audit(shop, listed), await audit(shop, listed, is_whole=False)

    # 601 left half a second, so the next 1,001 bought 501 s and not 500.
    assert words(whole)[0] == "1: it buys 500 s and not 501"
    assert part.holds, words(part)


LIES = [
    ("amount", "1001", "it credits 1001 of"),
    ("rent_seconds_added", 301, "it buys 300 s and not 301"),
    ("rent_seconds_added", 299, "it buys 300 s and not 299"),
    ("slot", 7, "and not 7"),
    ("block_time", "2026-02-03T04:05:06.000Z", "and not 1770091506"),
    ("asset", "SOL", "of SOL; the chain shows 0 left"),
    ("tx_signature", "nonsense", "no line of a ledger"),
    ("amount", "-5", "no line of a ledger"),
    ("amount", "1e3", "no line of a ledger"),
    ("price", "1/0", "no line of a ledger"),
    ("account", None, None),
]


@pytest.mark.parametrize(("column", "lie", "told"), LIES)
async def test_a_lie_is_told_by_its_line(shop: Shop, column: str, lie: Any, told: str | None) -> None:
    await busy(shop)
    listed = await rows(shop)
    if lie is None:
        del listed[0][column]
        told = "no line of a ledger"
    else:
        listed[0][column] = lie

    report = await audit(shop, listed)

    assert not report.holds
    assert any(one.startswith("1: ") and told in one for one in words(report)), words(report)  # type: ignore[operator]


async def test_a_credit_that_stands_there_twice_is_found(shop: Shop) -> None:
    await busy(shop)
    listed = await rows(shop)

    for again in (listed[:1] + listed, listed + listed[:1]):  # side by side, and after it was forgotten
        report = await audit(shop, again)
        assert any("the chain shows 0 left" in one for one in words(report))


async def test_a_payment_that_never_was_is_found(shop: Shop) -> None:
    """It failed on the chain, or paid nobody here."""
    await busy(shop)
    listed = await rows(shop)
    signature = listed[2]["tx_signature"]
    failed = shop.chain[signature]
    failed["meta"]["err"] = {"InstructionError": [0, "Custom"]}

    report = await audit(shop, listed)

    assert any("nothing was paid to the treasury by it: transaction_failed" in one for one in words(report))


async def test_what_no_node_tells_of_is_neither_right_nor_wrong(shop: Shop) -> None:
    await busy(shop)
    listed = await rows(shop)
    gone = listed[3]["tx_signature"]
    del shop.chain[gone]

    report = await audit(shop, listed)

    assert not report.holds
    assert report.unchecked == {gone: "not_found_yet"}
    assert report.differences == ()


async def test_a_few_are_asked_about_at_once_and_each_once(shop: Shop) -> None:
    quote = await shop.quote(await shop.instance())
    for _ in range(30):
        await shop.pays(100, quote)
    nodes = Nodes(shop)
    done: list[int] = []

    report = await verify_statement(lines(await rows(shop)), nodes.check, lookups_at_once=4, told=done.append)

    assert report.holds
    assert nodes.most_at_once == 4
    assert sorted(nodes.asked) == sorted(shop.chain)
    assert done == list(range(1, 31))


async def test_when_asking_breaks_nothing_goes_on_behind_it(shop: Shop) -> None:
    quote = await shop.quote(await shop.instance())
    for _ in range(6):
        await shop.pays(100, quote)
    begun: list[asyncio.Task[Any]] = []

    async def broken(signature: str) -> Agreed:
        task = asyncio.current_task()
        assert task is not None
        begun.append(task)
        if len(begun) == 1:
            raise ConnectionError
        await asyncio.Event().wait()
        return Agreed(Verdict(signature=signature), ())

    with pytest.raises(ConnectionError):
        await verify_statement(lines(await rows(shop)), broken, lookups_at_once=4)

    await asyncio.wait(begun, timeout=5)
    assert all(task.done() for task in begun)
