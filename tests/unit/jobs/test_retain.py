"""The janitor and a client's removal: bytes go first, their row is marked when they are gone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import pytest

from tempa.core.errors import Refusal, StoreUnavailable
from tempa.jobs import cancel
from tempa.jobs.model import Job, Status, StoredFile
from tempa.jobs.ports import Pruned
from tempa.jobs.retain import Janitor
from tests.unit.jobs.samples import NOW, PATIENCE_SECONDS, a_job

if TYPE_CHECKING:
    from tempa.jobs.ports import ArtifactStore, JobStore, Place


@dataclass
class Shelf:
    """Kept bytes by prefix. What is `stuck` cannot be deleted."""

    prefixes: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    old: set[str] = field(default_factory=set)
    listed: list[str] = field(default_factory=list)
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    tried: list[str] = field(default_factory=list)

    async def delete(self, prefix: str) -> None:
        self.tried.append(prefix)
        if prefix in self.stuck:
            raise OSError(5, "Input/output error")
        self.prefixes.discard(prefix)
        if not self.prefixes:
            self.emptied.set()

    async def aged(self, age_seconds: float, after: str, limit: int) -> list[str]:
        assert age_seconds >= 3600, "the row of what is younger may be on its way"
        page = [prefix for prefix in sorted(self.prefixes & self.old) if prefix > after][:limit]
        self.listed += page
        return page


@dataclass
class LapsedStore:
    """Jobs and files past their time, oldest first. `away`: so often nothing can be written."""

    shelf: Shelf
    jobs: dict[str, Job] = field(default_factory=dict)
    files: dict[str, StoredFile] = field(default_factory=dict)
    away: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    strangers: set[str] = field(default_factory=set)  # jobs without a row, which may be another store's
    spent: list[bool] = field(default_factory=list)  # removed jobs past their time: may it go?
    slices: list[tuple[float, Place | None]] = field(default_factory=list)
    tombstones: int = 0
    days: int = 0

    def _write(self, owner: str) -> None:
        assert owner not in {prefix.partition(".")[0] for prefix in self.shelf.prefixes}, "bytes go first"
        if self.away:
            self.away -= 1
            raise StoreUnavailable

    async def job(self, account: str, job_id: str) -> Job | None:
        return self.jobs.get(job_id)

    async def lapsed(self, limit: int) -> list[Job]:
        return [job for job in self.jobs.values() if not job.removed][:limit]

    async def mark_removed(self, account: str, job_id: str) -> bool:
        self._write(job_id)
        self.jobs[job_id] = replace(self.jobs[job_id], removed=True)
        return True

    async def lapsed_files(self, limit: int) -> list[StoredFile]:
        if not self.files:
            self.idle.set()
        return list(self.files.values())[:limit]

    async def orphans(self, owners: list[str]) -> list[str]:
        def kept(owner: str) -> bool:
            return owner in self.files or (owner in self.jobs and not self.jobs[owner].removed)

        return [owner for owner in owners if not kept(owner) and owner not in self.strangers]

    async def unknown_jobs(self, ids: list[str]) -> list[str]:
        return [job_id for job_id in ids if job_id not in self.jobs]

    async def prune(self, kept_seconds: float, after: Place | None, limit: int) -> Pruned:
        self.slices.append((kept_seconds, after))
        start = after[0] if after else 0
        looked_at = self.spent[start : start + limit]
        self.spent[start : start + limit] = [may_go for may_go in looked_at if not may_go]
        stayed = len(looked_at) - sum(looked_at)
        further = (start + stayed, 0) if len(looked_at) == limit else None
        return Pruned(sum(looked_at), further)

    async def forget_gone(self, kept_seconds: float, limit: int) -> int:
        assert kept_seconds == 365 * 86_400
        forgotten = min(limit, self.tombstones)
        self.tombstones -= forgotten
        return forgotten

    async def forget_days(self, limit: int) -> int:
        forgotten = min(limit, self.days)
        self.days -= forgotten
        return forgotten

    async def forget_file(self, file_id: str) -> None:
        self._write(file_id)
        del self.files[file_id]


@dataclass
class Bench:
    """A janitor and what it touches."""

    shelf: Shelf = field(default_factory=Shelf)
    store: LapsedStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = LapsedStore(self.shelf)

    def add_job(self, name: str, epoch: int = 1, status: Status = Status.COMPLETED) -> None:
        """A job each of whose attempts has kept something."""
        self.store.jobs[name] = a_job(id=name, status=status, epoch=epoch)
        self.shelf.prefixes |= {f"{name}.a{number}" for number in range(1, epoch + 1)}

    def add_file(self, name: str) -> None:
        self.store.files[name] = StoredFile(
            id=name,
            account="default",
            key=name,
            sha256="ab" * 32,
            size_bytes=1,
            created_at=NOW,
            expires_at=NOW,
        )
        self.shelf.prefixes.add(name)

    def janitor(self) -> Janitor:
        return Janitor(
            store=cast("JobStore", self.store),
            artifacts=cast("ArtifactStore", self.shelf),
            every_seconds=0.0,
            rest_seconds=0.0,
            rows_kept_days=2.0,
        )

    async def remove(self, name: str) -> None:
        await cancel.remove(cast("JobStore", self.store), cast("ArtifactStore", self.shelf), "default", name)

    @property
    def left(self) -> set[str]:
        """Jobs that are not marked as removed."""
        return {job.id for job in self.store.jobs.values() if not job.removed}


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_what_has_lapsed_loses_its_bytes_and_then_its_row(bench: Bench) -> None:
    for number in range(150):  # more than a batch
        bench.add_job(f"cad_{number}", epoch=3)
        bench.add_file(f"file_{number}")

    await bench.janitor().clean()

    assert bench.shelf.prefixes == set()
    assert (bench.left, bench.store.files) == (set(), {})


async def test_what_cannot_be_deleted_holds_up_no_other_and_is_tried_again(bench: Bench) -> None:
    for number in range(250):
        bench.add_job(f"cad_{number}", epoch=2)
        bench.add_file(f"file_{number}")
    bench.shelf.stuck = {f"cad_{number}.a2" for number in range(200)} | {"file_0"}

    await bench.janitor().clean()

    assert bench.left == {f"cad_{number}" for number in range(200)}
    assert bench.store.files.keys() == {"file_0"}
    assert bench.shelf.prefixes == bench.shelf.stuck

    bench.shelf.stuck = set()
    await bench.janitor().clean()

    assert bench.shelf.prefixes == set()
    assert (bench.left, bench.store.files) == (set(), {})


async def test_a_sick_disk_ends_the_round(bench: Bench) -> None:
    names = [f"cad_{number}" for number in range(3000)]
    for name in names:
        bench.add_job(name)
    bench.shelf.stuck = {f"{name}.a1" for name in names}

    await bench.janitor().clean()

    assert 1000 <= len(bench.shelf.tried) < 3000
    assert bench.left == set(names)


async def test_a_store_that_goes_away_in_between_leaves_no_bytes_behind(bench: Bench) -> None:
    bench.add_job("cad_1")
    bench.add_file("file_1")
    bench.store.away = 3
    stop = asyncio.Event()

    async with asyncio.timeout(PATIENCE_SECONDS):
        role = asyncio.create_task(bench.janitor().run(stop))
        await bench.store.idle.wait()
        stop.set()
        await role

    assert (bench.left, bench.store.files, bench.shelf.prefixes) == (set(), {}, set())


async def test_a_client_removes_what_every_attempt_has_kept(bench: Bench) -> None:
    bench.add_job("cad_1", epoch=3)

    await bench.remove("cad_1")

    assert (bench.left, bench.shelf.prefixes) == (set(), set())


async def test_what_a_client_could_not_remove_is_not_marked(bench: Bench) -> None:
    bench.add_job("cad_1")
    bench.shelf.stuck = {"cad_1.a1"}

    with pytest.raises(Refusal) as caught:
        await bench.remove("cad_1")

    assert (caught.value.slug, caught.value.status) == ("store-unavailable", 503)
    assert bench.left == {"cad_1"}

    bench.shelf.stuck = set()
    await bench.remove("cad_1")

    assert (bench.left, bench.shelf.prefixes) == (set(), set())


@pytest.mark.parametrize("status", [Status.QUEUED, Status.PROCESSING])
async def test_a_job_that_has_not_ended_keeps_its_bytes(bench: Bench, status: Status) -> None:
    bench.add_job("cad_1", status=status)

    with pytest.raises(Refusal) as caught:
        await bench.remove("cad_1")

    assert (caught.value.slug, caught.value.status) == ("conflict", 409)
    assert bench.shelf.prefixes == {"cad_1.a1"}


async def test_what_has_no_owner_goes_and_what_has_one_stays(bench: Bench) -> None:
    """An upload whose row never came; a lost attempt that kept its files after its job was removed."""
    bench.add_file("file_recorded")
    bench.add_job("cad_running", epoch=2, status=Status.PROCESSING)
    bench.add_job("cad_removed", epoch=2)
    await bench.remove("cad_removed")
    bench.shelf.prefixes |= {"file_lost", "file_fresh", "cad_removed.a1"}
    bench.shelf.old = bench.shelf.prefixes - {"file_fresh"}

    await bench.janitor().sweep()

    assert bench.shelf.prefixes == {"file_recorded", "file_fresh", "cad_running.a1", "cad_running.a2"}


async def test_of_a_job_that_was_never_admitted_the_inputs_go_and_only_they(bench: Bench) -> None:
    """A crash came between its inputs and its row; or it is a job of another store, with its results."""
    bench.add_job("cad_queued", epoch=0, status=Status.QUEUED)
    bench.store.strangers = {"cad_strange"}
    bench.shelf.prefixes |= {"cad_strange.a0", "cad_strange.a1", "cad_queued.a0"}
    bench.shelf.old = set(bench.shelf.prefixes)

    await bench.janitor().sweep()

    assert bench.shelf.prefixes == {"cad_strange.a1", "cad_queued.a0"}


async def test_a_removal_takes_the_inputs_along(bench: Bench) -> None:
    bench.add_job("cad_1", epoch=1)
    bench.shelf.prefixes.add("cad_1.a0")

    await bench.remove("cad_1")

    assert bench.shelf.prefixes == set()


async def test_each_round_looks_at_a_bounded_share_and_all_are_looked_at_in_turn(bench: Bench) -> None:
    bench.shelf.prefixes = bench.shelf.old = {f"cad_{number:04}.a1" for number in range(1200)}
    for number in range(1200):
        bench.store.jobs[f"cad_{number:04}"] = a_job(id=f"cad_{number:04}")
    janitor = bench.janitor()

    rounds = []
    for _ in range(4):
        bench.shelf.listed = []
        await janitor.sweep()
        rounds.append(bench.shelf.listed)

    assert [len(page) for page in rounds] == [500, 500, 200, 500]
    assert [prefix for page in rounds[:3] for prefix in page] == sorted(bench.shelf.prefixes)
    assert rounds[3] == rounds[0]


async def test_an_orphan_that_cannot_be_deleted_holds_up_no_other(bench: Bench) -> None:
    bench.shelf.prefixes = bench.shelf.old = {"file_1", "file_2", "file_3"}
    bench.shelf.stuck = {"file_2"}

    await bench.janitor().sweep()

    assert bench.shelf.prefixes == {"file_2"}


async def test_a_pass_of_pruning_looks_at_each_job_once(bench: Bench) -> None:
    """What may not go yet stands in the way of no other, and is looked at again in the next pass."""
    bench.store.spent = [number % 3 > 0 for number in range(300)]
    janitor, stop = bench.janitor(), asyncio.Event()

    assert not await janitor.prune(stop)

    assert bench.store.spent == [False] * 100
    assert {kept for kept, _ in bench.store.slices} == {2 * 86_400}
    looked_at = len(bench.store.slices)
    bench.store.spent = [True] * 100
    assert not await janitor.prune(stop)
    assert bench.store.spent == []
    assert bench.store.slices[looked_at] == (2 * 86_400, None)  # a new pass


async def test_a_round_of_pruning_is_bounded_and_the_next_goes_on_there(bench: Bench) -> None:
    bench.store.spent = [False] * 20_000
    janitor, stop = bench.janitor(), asyncio.Event()

    rounds = [await janitor.prune(stop), len(bench.store.slices), await janitor.prune(stop)]

    assert rounds == [True, 500, False]
    places = [after[0] if after else 0 for _, after in bench.store.slices]
    assert places == sorted(places)
    assert len(set(places)) == len(places)


async def test_pruning_stops_when_it_is_told_to(bench: Bench) -> None:
    bench.store.spent, bench.store.tombstones = [True] * 1000, 1000
    janitor, stop = bench.janitor(), asyncio.Event()
    stop.set()

    await janitor.prune(stop)

    assert len(bench.store.slices) == 1
    assert bench.store.tombstones > 900


async def test_tombstones_go_after_a_year_and_days_when_they_are_over(bench: Bench) -> None:
    bench.store.tombstones, bench.store.days = 120, 2500  # more than a slice

    await bench.janitor().prune(asyncio.Event())

    assert (bench.store.tombstones, bench.store.days) == (0, 0)


async def test_the_role_prunes_too_and_goes_on_at_once_while_there_is_more(bench: Bench) -> None:
    bench.store.spent = [True] * 20_000
    janitor, stop = replace(bench.janitor(), every_seconds=2 * PATIENCE_SECONDS), asyncio.Event()
    async with asyncio.timeout(PATIENCE_SECONDS):
        role = asyncio.create_task(janitor.run(stop))
        while bench.store.spent:
            await asyncio.wait({role}, timeout=0)
        stop.set()
        await role

    assert bench.store.spent == []  # within one round: the next is further off than our patience


async def test_the_role_sweeps_too(bench: Bench) -> None:
    bench.shelf.prefixes = bench.shelf.old = {"file_lost"}
    stop = asyncio.Event()
    async with asyncio.timeout(PATIENCE_SECONDS):
        role = asyncio.create_task(bench.janitor().run(stop))
        await bench.shelf.emptied.wait()
        stop.set()
        await role

    assert bench.shelf.tried == ["file_lost"]
