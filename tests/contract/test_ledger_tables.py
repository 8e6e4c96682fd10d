"""The tables themselves refuse to be altered, by whoever writes to them; and the views that people read."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.settlement.inbox import InboxEnding, InboxState
from tempa.settlement.quotes import Price, PriceOffer
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.settlement_steps import (
    LAMPORTS,
    MINT,
    a_quote,
    a_signature,
    an_instance,
    heard,
    pay,
)
from tempa.testing.contracts.store import StoreBench

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

_SHM = Path("/dev/shm")  # noqa: S108 - a fresh, private folder in it
MEMORY = _SHM if _SHM.is_dir() else None
REFUSED = (sqlite3.IntegrityError, asyncpg.RaiseError)


@dataclass
class Tables:
    """A store, and SQL beside it."""

    bench: StoreBench
    run_together: Callable[..., Awaitable[list[tuple[Any, ...]]]]  # in one transaction; what the last found
    is_postgres: bool

    async def run(self, statement: str) -> list[tuple[Any, ...]]:
        return await self.run_together(statement)


@asynccontextmanager
async def on_sqlite(_: pytest.FixtureRequest) -> AsyncIterator[Tables]:
    clock = ManualClock()
    wake = InProcessWake(clock)
    with TemporaryDirectory(prefix="tempa-", dir=MEMORY) as name:
        path = Path(name) / "tempa.db"
        store = await SqliteStore.open(path, clock=clock, wake=wake)

        async def run(*statements: str) -> list[tuple[Any, ...]]:
            with closing(sqlite3.connect(path)) as connection, connection:
                found = [connection.execute(statement).fetchall() for statement in statements]
            return found[-1]

        yield Tables(StoreBench(store=store, clock=clock, wake=wake), run, is_postgres=False)
        await store.close()


@asynccontextmanager
async def on_postgres(request: pytest.FixtureRequest) -> AsyncIterator[Tables]:
    clock = ManualClock()
    wake = InProcessWake(clock)
    url = request.getfixturevalue("database")
    store = await PostgresStore.open(Address(url), clock=clock, wake=wake)
    connection = await asyncpg.connect(url)

    async def run(*statements: str) -> list[tuple[Any, ...]]:
        async with connection.transaction():
            found = [await connection.fetch(statement) for statement in statements]
        return [tuple(row) for row in found[-1]]

    yield Tables(StoreBench(store=store, clock=clock, wake=wake), run, is_postgres=True)
    await connection.close()
    await store.close()


@pytest.fixture(params=[on_sqlite, on_postgres], ids=["sqlite", "postgres"])
async def tables(request: pytest.FixtureRequest) -> AsyncIterator[Tables]:
    async with request.param(request) as made:
        yield made


LEDGER = ("receipt", "allocation", "journal", "posting")
OWN_COLUMN = {"receipt": "amount", "allocation": "amount", "journal": "hash", "posting": "amount"}


async def test_what_stands_in_the_ledger_is_neither_changed_nor_deleted(tables: Tables) -> None:
    quote = await a_quote(tables.bench, await an_instance(tables.bench))
    await pay(tables.bench, quote, 7_200)

    for table in LEDGER:
        before = await tables.run(f"select * from {table}")  # noqa: S608 - ours
        assert before
        with pytest.raises(REFUSED, match="only added to"):
            await tables.run(f"update {table} set {OWN_COLUMN[table]} = '1'")  # noqa: S608 - ours
        with pytest.raises(REFUSED, match="only added to"):
            await tables.run(f"delete from {table}")  # noqa: S608 - ours
        assert await tables.run(f"select * from {table}") == before  # noqa: S608 - ours


async def test_the_ledger_is_not_emptied_either(tables: Tables) -> None:
    """SQLite has no `truncate`."""
    await pay(tables.bench, None, 7_200)
    if tables.is_postgres:
        ledger = "receipt, allocation, journal, posting, outflow, anomaly, refund, refund_signing"
        with pytest.raises(REFUSED, match="only added to"):
            await tables.run(f"truncate {ledger}")

    assert len(await tables.run("select * from receipt")) == 1


async def test_an_entry_is_written_once_whole_and_balanced(tables: Tables) -> None:
    """Whatever program writes it, beyond 2**63 too."""
    await pay(tables.bench, None, 7_200)
    entry = (
        "insert into journal (number, kind, key, at, detail, previous_hash, hash) "
        "values ({0}, 'receipt', 'k{0}', 1, '{{}}', 'p{0}', 'h{0}')"
    )

    async def posting(number: int, line: int, amount: str, asset: str = "SOL") -> None:
        await tables.run(
            "insert into posting (journal_number, line, account, asset, amount) "  # noqa: S608 - ours
            f"values ({number}, {line}, 'a', '{asset}', '{amount}')"
        )

    with pytest.raises(REFUSED, match="sealed"):
        await posting(1, 9, "5")
    with pytest.raises(REFUSED, match="sum to zero"):
        await tables.run(entry.format(2))
    for amounts in (
        [("1", "SOL"), ("-1", "MINT")],
        [("18446744073709551615", "SOL"), ("-18446744073709551614", "SOL")],
        [("10000000000", "SOL"), ("-1", "SOL")],
        [("10000000001", "SOL"), ("-1", "SOL")],
    ):
        with pytest.raises(REFUSED, match="sum to zero"):
            await together(tables, amounts, entry)
    good = [("18446744073709551615", "SOL"), ("-10000000000", "SOL"), ("-18446744063709551615", "SOL")]
    await together(tables, good, entry)
    assert len(await tables.run("select * from journal")) == 2


async def together(tables: Tables, amounts: list[tuple[str, str]], entry: str) -> None:
    """The lines and their entry in one transaction."""
    lines = [f"(2, {line}, 'a', '{asset}', '{amount}')" for line, (amount, asset) in enumerate(amounts)]
    insert = f"insert into posting (journal_number, line, account, asset, amount) values {', '.join(lines)}"  # noqa: S608
    await tables.run_together(insert, entry.format(2))


async def test_no_more_is_allocated_than_came_in(tables: Tables) -> None:
    quote = await a_quote(tables.bench, await an_instance(tables.bench))
    receipt = await pay(tables.bench, quote, 7_200)
    large = await pay(tables.bench, None, 2**64 - 1)

    async def allocate(signature: str, amount: int) -> None:
        await tables.run(
            "insert into allocation (receipt_number, quote_id, amount, seconds, at) "  # noqa: S608 - ours
            f"select number, '{quote.id}', '{amount}', 0, 1 from receipt where signature = '{signature}'"
        )

    with pytest.raises(REFUSED, match="more was allocated than came in"):
        await allocate(receipt.signature, 1)
    await allocate(large.signature, 2**64 - 2)
    await allocate(large.signature, 1)
    with pytest.raises(REFUSED, match="more was allocated than came in"):
        await allocate(large.signature, 1)


async def test_people_read_what_came_and_what_it_bought(tables: Tables) -> None:
    """The columns of the source recipe. In lamports only what is SOL."""
    bench = tables.bench
    sol = PriceOffer("SOL", 10**9, 3_600)
    gpu = await an_instance(bench, PriceOffer(MINT, 7_200, 3_600), sol)
    tokens = await pay(bench, await a_quote(bench, gpu), 7_200)
    lamports = await pay(
        bench,
        await a_quote(bench, gpu, price=Price.of(3_600, 10**9), treasury=LAMPORTS),
        5 * 10**8,
    )
    nobodys = await pay(bench, None, 2**64 - 1)

    rows = await tables.run(
        "select tx_signature, user_wallet, gpu_instance_id, amount_lamports, amount, asset, "
        "rent_seconds_added, status from gpu_rental_ledger order by id"
    )

    assert rows == [
        (tokens.signature, tokens.payer, gpu, None, "7200", MINT, 3_600, "CONFIRMED"),
        (lamports.signature, lamports.payer, gpu, 5 * 10**8, "500000000", "SOL", 1_800, "CONFIRMED"),
        (nobodys.signature, nobodys.payer, None, None, str(2**64 - 1), MINT, 0, "SUSPENSE"),
    ]


async def test_people_read_how_instances_stand(tables: Tables) -> None:
    bench = tables.bench
    made = [await an_instance(bench) for _ in range(4)]
    for gpu in made[1:]:
        await pay(bench, await a_quote(bench, gpu), 7_200)
    await bench.store.suspend_instance(made[3])
    bench.clock.advance(3_600)
    await bench.store.expire_rentals(0, 3_600, 10)

    async def seen() -> list[str]:
        return [status for (status,) in await tables.run("select status from gpu_instances order by id")]

    assert await seen() == ["AVAILABLE", "GRACE", "GRACE", "SUSPENDED"]
    bench.clock.advance(3_600)
    await pay(bench, await a_quote(bench, made[1]), 7_200)
    await bench.store.expire_rentals(0, 3_600, 10)
    assert await seen() == ["AVAILABLE", "ACTIVE", "EXPIRED", "SUSPENDED"]
    ((expiry,),) = await tables.run(f"select current_expiry from gpu_instances where id = '{made[1]}'")  # noqa: S608
    until = await bench.store.instance(made[1])
    assert until is not None
    assert until.rental is not None
    shown = expiry.isoformat(timespec="milliseconds") if tables.is_postgres else expiry
    assert shown.replace("+00:00", "Z") == until.rental.expires_at.isoformat(timespec="milliseconds").replace(
        "+00:00", "Z"
    )


async def test_people_read_one_row_a_transaction(tables: Tables) -> None:
    bench = tables.bench
    refused, waiting, posted = a_signature(), a_signature(), a_signature()
    for source in ("helius", "sweep"):
        await bench.store.take_in(heard(refused, waiting, posted, source=source))
    failed = InboxEnding(signature=refused, state=InboxState.TERMINAL, reason="transaction_failed")
    await bench.store.settle_inbox([failed])
    await pay(bench, await a_quote(bench, await an_instance(bench)), 7_200, signature=posted)

    rows = await tables.run("select tx_signature, status from webhook_events")

    assert dict(rows) == {refused: "REFUSED", waiting: "PENDING", posted: "CREDITED"}
    assert len(rows) == 3
