"""One process of a server in a history: it dies at a command of the store, and another takes its place."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tempa.adapters.stores.sqlite.connections import open_reader, open_writer
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.settlement.follow import Follower
from tempa.settlement.lookup import Patience
from tempa.settlement.model import Treasury
from tempa.settlement.quorum import Quorum
from tempa.settlement.settle import Settler
from tempa.settlement.sweep import Sweeper
from tempa.settlement.watch import TreasuryWatch
from tests.simulation.places import Database, File

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tempa.settlement.post import Terms
    from tempa.settlement.quorum import Rule
    from tempa.testing.clock import ManualClock
    from tempa.testing.contracts.bench import Store
    from tempa.testing.postgres import PostgresCluster
    from tests.simulation.settlement.chain import ClusterChain
    from tests.simulation.settlement.ground import Ground

LEASE_SECONDS = 120.0
COMMANDS = frozenset(
    {"take_in", "claim_inbox", "settle_inbox", "post_credits", "advance_cursor", "recall_lookups"}
    | {"note_progress", "expire_rentals", "redrive_anomaly", "resolve_anomaly"}
)


class Died(Exception):  # noqa: N818 - it says what is the case
    """The process is no more."""


class Shelf(Protocol):
    """Where the ledger lies. `restore` puts back what `back_up` kept; only a file can do that here."""

    shared: bool

    async def open(self, clock: ManualClock) -> Store: ...
    def back_up(self) -> bool: ...
    def restore(self) -> None: ...
    def close(self) -> None: ...


class _Inline:
    """In the place of the store's threads: the same commands in the loop's own, so that a seed is a history.

    Twice as fast, too. Threads and group commit have every eighth history (test_histories.py).
    """

    def __init__(self, connection: sqlite3.Connection, *, writes: bool) -> None:
        self._connection, self._writes = connection, writes

    async def do(self, run: Callable[[sqlite3.Connection], Any]) -> Any:
        """One transaction."""
        if not self._writes:
            return run(self._connection)
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            done = run(self._connection)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
        return done.answer

    async def close(self) -> None:
        """The file is free."""
        self._connection.close()


class FileShelf(File):
    """A file that begins as a copy of one with tables in it: 10 ms less a history."""

    def __init__(self, blank: Path, *, threads: bool = False) -> None:
        super().__init__()
        self._path, self._threads = self._folder / "tempa.db", threads
        shutil.copyfile(blank, self._path)

    async def open(self, clock: ManualClock) -> Store:
        if self._threads:
            return await super().open(clock)
        writer: Any = _Inline(open_writer(self._path), writes=True)
        readers: Any = _Inline(open_reader(self._path), writes=False)
        return SqliteStore(writer, readers, clock)

    def back_up(self) -> bool:
        """While it is open."""
        with closing(sqlite3.connect(self._path)) as source, closing(sqlite3.connect(self._kept)) as target:
            source.backup(target)
        return True

    def restore(self) -> None:
        """While it is closed."""
        for beside in ("-wal", "-shm"):
            self._path.with_name(self._path.name + beside).unlink(missing_ok=True)
        shutil.copyfile(self._kept, self._path)

    @property
    def _kept(self) -> Path:
        return self._folder / "kept.db"


class DatabaseShelf(Database):
    """A database of its own."""

    def __init__(self, cluster: PostgresCluster, template: str) -> None:
        super().__init__(cluster, template)

    def back_up(self) -> bool:
        """Not here."""
        return False

    def restore(self) -> None:
        """Not here."""
        raise AssertionError("nothing was backed up")


class Fragile:
    """A store whose process dies before or after one command; then nothing reaches it any more."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._plan: tuple[str, bool, int] | None = None
        self._idle: asyncio.Event | None = None
        self.dead: tuple[str, bool] | None = None

    def die_at(self, command: str, *, after: bool, passage: int) -> None:
        """At this passage of it, before it has begun or once it has committed."""
        self._plan = (command, after, passage)

    def tell_when_idle(self, idle: asyncio.Event) -> None:
        """Set as soon as a claim finds nothing."""
        self._idle = idle

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name)

    async def _call(self, name: str, *args: Any, **options: Any) -> Any:
        if self.dead is not None:
            raise Died
        when = self._when(name)
        if when is False:
            self.dead = (name, False)
            raise Died
        answer = await getattr(self._store, name)(*args, **options)
        if when is True:
            self.dead = (name, True)
            raise Died
        if name == "claim_inbox" and not answer and self._idle is not None:
            self._idle.set()
        return answer

    def _when(self, name: str) -> bool | None:
        if self._plan is None or self._plan[0] != name:
            return None
        command, after, passage = self._plan
        self._plan = None if passage == 1 else (command, after, passage - 1)
        return after if passage == 1 else None


class Tally:
    """A meter that counts what lookups came to."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """As a meter does."""
        if name == "tempa_settlement_lookups_total":
            self.outcomes[labels["outcome"]] += int(amount)

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Nothing is asked of it."""

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Nothing is asked of it."""


class _Steady(random.Random):
    """Waits as long as it may: which of several lookups is told first must not matter."""

    def uniform(self, a: float, b: float) -> float:
        return b


@dataclass
class Server:
    """The roles of settlement, as `wiring` puts them together, over one store that may die under them."""

    ground: Ground
    nodes: Sequence[ClusterChain]
    rule: Rule
    terms: Terms
    clock: ManualClock
    store: Store
    tally: Tally
    fragile: Fragile = field(init=False)

    def __post_init__(self) -> None:
        wake = InProcessWake(self.clock)
        self.fragile = Fragile(self.store)
        port: Any = self.fragile
        self.quorum = Quorum(self.nodes, Treasury(cluster="", accounts=()), self.rule)
        self.watch = TreasuryWatch(
            quorum=self.quorum,
            store=port,
            wallet=str(self.ground.treasury.key),
            mints=self.ground.mints,
            cluster=self.ground.chain.genesis_hash,
        )
        self.settler = Settler(
            store=port,
            quorum=self.quorum,
            watch=self.watch,
            terms=self.terms,
            wake=wake,
            clock=self.clock,
            meter=self.tally,
            rng=_Steady(0),
            patience=Patience(not_found_after_seconds=20.0),
            lease_seconds=LEASE_SECONDS,
        )
        common: dict[str, Any] = {
            "store": port,
            "quorum": self.quorum,
            "watch": self.watch,
            "clock": self.clock,
            "meter": self.tally,
        }
        self.sweeper = Sweeper(**common, page_limit=7)
        self.follower = Follower(**common, at_once=1)

    async def look(self) -> bool:
        """See nodes and treasury; whether payments are looked up."""
        await self.watch.look()
        return self.watch.treasury is not None

    async def settle(self) -> None:
        """Look up all that is due."""
        if self.watch.treasury is None:
            return
        idle = asyncio.Event()
        self.fragile.tell_when_idle(idle)
        try:
            await self.settler.run(idle)
        finally:
            if self.settler._running:  # they die with the process, or end what the disk has begun
                await asyncio.wait(self.settler._running)
