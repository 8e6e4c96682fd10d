"""The door: every problem at once, one request one fingerprint, keys as the contract says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.core.clock import Clock, SystemClock
from tempa.core.errors import Problem, Refusal
from tempa.core.limits import DEFAULT_LIMITS, Limits
from tempa.jobs.intake import Addresses, Intake, read_key, reserve, work_key
from tempa.jobs.model import Admission, Job, NewJob, Request, Result, Status, StoredArtifact, Verdict
from tempa.jobs.ports import ArtifactStore, Engine, JobStore, Reading, RunLimits
from tempa.testing.clock import ManualClock
from tests.unit.jobs.samples import PATIENCE_SECONDS, a_job, a_request

FIELDS = frozenset({"parameters", "template"})


class FakeEngine:
    """An engine that wants a positive `length`."""

    name, version, kind, family, model, lane = "echo", "1", "cad", "cad_generation", "echo", "cpu"
    deterministic, life_cycle, module = True, "fork", "nowhere"
    limits, takes = RunLimits(1.0, 1 << 20), ()

    def read(self, body: Mapping[str, Any], limits: Limits) -> Reading:
        length = body.get("parameters", {}).get("length")
        if not isinstance(length, (int, float)) or length <= 0:
            return Reading(None, (Problem("/parameters/length", "Must be positive.", 0.0),))
        return Reading({"length": float(length)})

    def describe(self, limits: Limits = DEFAULT_LIMITS) -> Mapping[str, Any]:
        return {}


class Admitting:
    """A store that admits whatever comes."""

    def __init__(self) -> None:
        self.admitted: list[NewJob] = []

    async def admit(self, new: NewJob) -> Admission:
        self.admitted.append(new)
        return Admission(Verdict.ADMITTED, a_job(id=new.id, request=new.request))


class SlowStore:
    """Admits under a key once, each commit when the test says so and with all that came before it."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self._waiting = asyncio.Semaphore(0)
        self._committed = asyncio.Event()

    async def admit(self, new: NewJob) -> Admission:
        committed = self._committed
        self._waiting.release()
        await committed.wait()
        assert new.reservation is not None
        verdict = Verdict.REPLAYED if new.reservation.key in self.rows else Verdict.ADMITTED
        standing = self.rows.setdefault(new.reservation.key, new.id)
        return Admission(verdict, a_job(id=standing, request=new.request))

    async def commit(self, count: int) -> None:
        """Commit as soon as `count` more requests wait for it."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(count):
                await self._waiting.acquire()
        self._committed.set()
        self._committed = asyncio.Event()


def a_file(key: str) -> StoredArtifact:
    return StoredArtifact(
        name=key, role="x", file_format="x", media_type="x/x", size_bytes=1, sha256="ab" * 32, key=key
    )


class KeptStore:
    """Every key stands for one completed job, unless it is asked not to."""

    def __init__(self) -> None:
        files = tuple(a_file(f"cad_1.a1/{name}") for name in "ab")
        self.job = a_job(status=Status.COMPLETED, result=Result(artifacts=files, measurements={}))
        self.standing: Job | None = self.job

    async def admit(self, new: NewJob) -> Admission:
        if self.standing is not None and not_for(new) != self.standing.id:
            return Admission(Verdict.REPLAYED, self.standing)
        self.standing = a_job(id=new.id, request=new.request, status=Status.QUEUED)
        return Admission(Verdict.ADMITTED, self.standing)


def not_for(new: NewJob) -> str | None:
    return None if new.reservation is None else new.reservation.not_for


class Disk:
    """Where files lie, less those that are gone."""

    def __init__(self, *gone: str) -> None:
        self.gone = gone

    async def path(self, key: str) -> Path | None:
        return None if key in self.gone else Path(key)


class Silent:
    """A meter nobody reads."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None: ...
    def observe(self, name: str, seconds: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


NO_STORE = cast("JobStore", None)  # `read` must not touch it


def the_intake(
    store: JobStore = NO_STORE,
    engine: Engine | None = None,
    clock: Clock | None = None,
    artifacts: ArtifactStore | None = None,
) -> Intake:
    return Intake(
        store=store,
        clock=clock or SystemClock(),
        engines={"echo": engine or cast("Engine", FakeEngine())},
        limits=DEFAULT_LIMITS,
        addresses=Addresses(),
        meter=Silent(),
        retention_days=30,
        artifacts=artifacts,
    )


def read(document: Any) -> Request:
    return the_intake().read(document, FIELDS, "echo")


def refused(document: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read(document)
    return caught.value


def test_a_good_request_is_read_with_its_defaults() -> None:
    request = read({"parameters": {"length": 3}})
    assert (request.engine, request.work, request.priority, request.cache) == (
        "echo",
        {"length": 3.0},
        5,
        "use",
    )


def test_every_problem_is_told_at_once() -> None:
    refusal = refused(
        {
            "parameters": {"length": -1},
            "priority": 12,
            "deadline_seconds": "60",
            "tags": {"a": 1, "b\x07": "x"},
            "webhook_url": "https://10.0.0.1/",
            "webhook_events": ["job.completed", "job.nonsense"],
            "gpu_instance_id": "gpu-1",
            "colour": "red",
        }
    )
    assert (refusal.slug, refusal.status) == ("invalid-request", 422)
    assert {problem.pointer for problem in refusal.errors} == {
        "/parameters/length",
        "/priority",
        "/deadline_seconds",
        "/tags/a",
        "/tags/b\x07",
        "/webhook_url",
        "/webhook_events/1",
        "/gpu_instance_id",
        "/colour",
    }
    limits = {problem.pointer: problem.limit for problem in refusal.errors}
    assert (limits["/parameters/length"], limits["/priority"]) == (0.0, 9)


@pytest.mark.parametrize("document", [None, [], "x", 1, True])
def test_a_body_that_is_no_object_is_refused(document: Any) -> None:
    assert refused(document).errors[0].pointer == ""


@pytest.mark.parametrize(
    "option",
    [
        {"priority": 5.5},
        {"priority": True},
        {"priority": "5"},
        {"deadline_seconds": float("inf")},
        {"deadline_seconds": 0},
        {"tags": []},
        {"tags": {"": "x"}},
        {"tags": {"x": "y" * 257}},
        {"tags": {str(n): "" for n in range(33)}},
        {"cache": "maybe"},
        {"webhook_url": 7},
        {"webhook_events": ["job.completed"]},
    ],
)
def test_options_are_strict(option: Mapping[str, Any]) -> None:
    refusal = refused({"parameters": {"length": 1}, **option})
    assert refusal.slug == "invalid-request"
    assert refusal.errors[0].pointer.startswith("/" + next(iter(option)))


def test_a_list_of_no_events_is_not_the_default_one() -> None:
    hook = {"parameters": {"length": 1}, "webhook_url": "https://93.184.215.14/"}
    (problem,) = refused({**hook, "webhook_events": []}).errors
    assert problem.pointer == "/webhook_events"
    assert problem.message == "Name at least one event, or leave it out."
    assert read({**hook, "webhook_events": None}).webhook_events == ()


def test_an_integral_float_is_an_integer() -> None:
    assert read({"parameters": {"length": 1}, "priority": 7.0}).priority == 7


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/x", "https://[::1]/", "https://2130706433/", "http://example.com/"]
)
def test_an_address_that_may_not_be_called_has_its_own_problem(url: str) -> None:
    refusal = refused({"parameters": {"length": 1}, "webhook_url": url})
    assert (refusal.slug, refusal.status) == ("address-not-allowed", 422)


def test_an_unknown_engine_is_named_with_those_that_are_offered() -> None:
    refusal = refused({"engine": "nope", "parameters": {"length": 1}})
    assert (refusal.slug, refusal.as_dict()["code"]) == ("engine-unavailable", "ENGINE_UNAVAILABLE")
    assert "echo" in refusal.detail


@given(
    st.dictionaries(
        st.sampled_from([*sorted(FIELDS), "engine", "tags", "priority", "webhook_url", "zzz"]),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(),
            lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        ),
    )
)
def test_whatever_is_sent_is_read_or_refused(document: dict[str, Any]) -> None:
    document["parameters"] = {"length": 1}
    try:
        work = read(document).work
    except Refusal as refusal:
        work = {"length": 1.0} if refusal.errors else {}
    assert work == {"length": 1.0}


def test_spelling_does_not_change_the_derived_key_and_everything_said_does() -> None:
    plain = read({"parameters": {"length": 45}})
    same = read({"engine": "echo", "priority": 5.0, "parameters": {"length": 4.5e1}})
    assert reserve("/r", plain, None) == reserve("/r", same, None)
    others = [
        read({"parameters": {"length": 46}}),
        read({"parameters": {"length": 45}, "webhook_url": "https://example.com/hook"}),
        read({"parameters": {"length": 45}, "tags": {"a": "b"}}),
    ]
    keys = {reserve("/r", request, None).key for request in [plain, *others]}
    assert len(keys) == 4
    assert reserve("/other", plain, None).key not in keys


def test_a_trace_is_no_part_of_what_is_asked() -> None:
    traced = a_request(traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    for key in (None, "k"):
        assert reserve("/r", traced, key) == reserve("/r", a_request(), key)


def test_an_engine_upgrade_changes_the_derived_key_but_not_what_a_clients_key_stands_for() -> None:
    before, after = a_request(engine_version="1"), a_request(engine_version="2")
    assert reserve("/r", before, None).key != reserve("/r", after, None).key
    assert reserve("/r", before, "k") == reserve("/r", after, "k")


def test_equal_work_has_one_key_whatever_else_is_asked() -> None:
    plain = read({"parameters": {"length": 45}})
    alike = read(
        {
            "parameters": {"length": 4.5e1},
            "webhook_url": "https://example.com/hook",
            "tags": {"a": "b"},
            "priority": 9,
            "deadline_seconds": 60.0,
        }
    )
    assert work_key(plain) == work_key(alike) is not None


def test_other_work_another_engine_or_its_other_version_has_another_key() -> None:
    others = [
        a_request(),
        a_request(work={"length": 2.0}),
        a_request(engine="other"),
        a_request(engine_version="2"),
    ]
    assert len({work_key(request) for request in others}) == len(others)


def test_a_bypass_and_a_rented_instance_share_with_nobody() -> None:
    assert work_key(read({"parameters": {"length": 45}, "cache": "bypass"})) is None
    assert work_key(a_request(gpu_instance_id="gpu-1")) is None


@pytest.mark.parametrize("deterministic", [True, False])
async def test_only_what_a_deterministic_engine_makes_is_admitted_with_a_work_key(
    *, deterministic: bool
) -> None:
    engine, store = FakeEngine(), Admitting()
    engine.deterministic = deterministic
    intake = the_intake(cast("JobStore", store), cast("Engine", engine))
    request = intake.read({"parameters": {"length": 45}}, FIELDS, "echo")

    await intake.admit("default", "/r", request, "k")

    assert [new.work_key for new in store.admitted] == [work_key(request) if deterministic else None]


@pytest.mark.parametrize("key", ["k", None], ids=["a client's key", "derived"])
async def test_many_callers_with_one_key_are_answered_after_two_commits(key: str | None) -> None:
    store = SlowStore()
    intake = the_intake(cast("JobStore", store), clock=ManualClock())
    callers = [asyncio.create_task(intake.admit("default", "/r", a_request(), key)) for _ in range(100)]

    await store.commit(1)
    await store.commit(99)

    admissions = await asyncio.gather(*callers)
    assert [one.verdict for one in admissions] == [Verdict.ADMITTED] + [Verdict.REPLAYED] * 99
    assert {one.job.id for one in admissions} == set(store.rows.values())


async def test_who_waited_for_the_first_in_vain_is_told_to_ask_again() -> None:
    store, clock = SlowStore(), ManualClock()
    intake = the_intake(cast("JobStore", store), clock=clock)
    first, second = (asyncio.create_task(intake.admit("default", "/r", a_request(), "k")) for _ in range(2))
    await clock.until_asleep()

    clock.advance(1.999)
    await clock.until_asleep()
    clock.advance(0.001)

    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(Refusal) as caught:
            await second
    assert (caught.value.slug, caught.value.status) == ("request-in-progress", 409)
    assert caught.value.headers == {"Retry-After": "1"}
    await store.commit(1)
    assert (await first).verdict is Verdict.ADMITTED


async def test_other_keys_do_not_wait() -> None:
    store = SlowStore()
    intake = the_intake(cast("JobStore", store), clock=ManualClock())
    callers = [asyncio.create_task(intake.admit("default", "/r", a_request(), key)) for key in "abc"]

    await store.commit(3)

    assert {one.verdict for one in await asyncio.gather(*callers)} == {Verdict.ADMITTED}


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("abc", "abc"),
        ('"abc"', "abc"),
        (r'"a\"b\\c"', 'a"b\\c'),
        ("  k  ", "k"),
        ("x" * 255, "x" * 255),
        (None, None),
    ],
)
def test_keys_are_read_bare_or_quoted(header: str | None, key: str | None) -> None:
    assert read_key(header) == key


@pytest.mark.parametrize("header", ["", '""', "x" * 256, "tab\there", "snow\u2603", "nul\x00"])
def test_keys_that_are_not_printable_are_refused(header: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_key(header)
    assert caught.value.status == 422


@pytest.mark.parametrize(
    ("gone", "key", "verdict"),
    [
        ((), None, Verdict.REPLAYED),
        (("cad_1.a1/b",), None, Verdict.ADMITTED),
        (("cad_1.a1/a", "cad_1.a1/b"), None, Verdict.ADMITTED),
        (("cad_1.a1/b",), "a client's key", Verdict.REPLAYED),
    ],
)
async def test_a_derived_key_stands_for_no_result_that_has_lost_a_file(
    gone: tuple[str, ...], key: str | None, verdict: Verdict
) -> None:
    store, disk = KeptStore(), Disk(*gone)
    intake = the_intake(cast("JobStore", store), artifacts=cast("ArtifactStore", disk))

    first = await intake.admit("default", "/r", a_request(), key)
    again = await intake.admit("default", "/r", a_request(), key)

    assert first.verdict is verdict
    assert (first.job.id == store.job.id) is (verdict is Verdict.REPLAYED)
    assert (again.verdict, again.job.id) == (Verdict.REPLAYED, first.job.id)
