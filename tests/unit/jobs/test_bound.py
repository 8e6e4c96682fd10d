"""A request that is bound to a GPU instance: admitted while it is rented, refused with what to do else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from tempa.core.accounts import AccountFull
from tempa.core.errors import Refusal
from tempa.core.limits import Limits
from tempa.jobs.instances import NO_INSTANCES
from tempa.jobs.intake import Addresses, Intake
from tempa.jobs.model import Admission, NewJob, Tenant, Tenure, Verdict
from tempa.jobs.options import read_options
from tempa.testing.clock import ManualClock
from tests.unit.jobs.samples import NOW, Tally, a_job, a_request

GPU = "gpu_06b3x8f2k0e1r9m4t7q5w2z8ya"
ROUTE = "/v1/models/generate"


class KeyedStore:
    """Admits up to the bound it is given; what stands under a key is found whatever the bound."""

    def __init__(self) -> None:
        self.asked: list[NewJob] = []
        self.jobs: dict[str, Admission] = {}

    async def admit(self, new: NewJob) -> Admission:
        self.asked.append(new)
        key = new.id if new.reservation is None else new.reservation.key
        if key in self.jobs:
            return self.jobs[key]
        if new.queued_max is not None and len(self.jobs) >= new.queued_max:
            raise AccountFull(len(self.jobs))
        job = a_job(id=new.id, request=new.request)
        self.jobs[key] = Admission(Verdict.REPLAYED, job)
        return Admission(Verdict.ADMITTED, job)


@dataclass
class Rentals:
    """How everybody stands, and what was asked."""

    tenure_now: Tenure = Tenure.ACTIVE
    asked: list[Tenant] = field(default_factory=list)
    refused: list[Tenant] = field(default_factory=list)

    async def tenure(self, tenant: Tenant) -> Tenure:
        self.asked.append(tenant)
        return self.tenure_now

    async def refusal(self, tenant: Tenant) -> Refusal:
        self.refused.append(tenant)
        return Refusal("rental-required", "Pay this.", extra={"quote": {"quote_id": "quo_1"}})


@dataclass
class Door:
    """An intake and what stands behind it."""

    store: KeyedStore = field(default_factory=KeyedStore)
    rentals: Rentals = field(default_factory=Rentals)
    meter: Tally = field(default_factory=Tally)
    has_instances: bool = True

    async def admit(self, key: str | None, gpu_instance_id: str | None = GPU) -> Admission:
        engine = type("Engine", (), {"deterministic": True})
        intake = Intake(
            store=cast("Any", self.store),
            clock=ManualClock(NOW),
            engines={"echo": cast("Any", engine)},
            limits=Limits(),
            addresses=Addresses(),
            meter=self.meter,
            retention_days=30,
            allowance=self.rentals if self.has_instances else NO_INSTANCES,
        )
        request = a_request(gpu_instance_id=gpu_instance_id)
        return await intake.admit("acme", ROUTE, request, key, derive=False)


@pytest.fixture
def door() -> Door:
    return Door()


async def test_an_active_rental_lets_the_job_in_with_its_instance(door: Door) -> None:
    admission = await door.admit("k1")

    assert admission.verdict is Verdict.ADMITTED
    assert admission.job.request.gpu_instance_id == GPU
    assert (door.rentals.asked, door.rentals.refused) == ([Tenant("acme", GPU)], [])


@pytest.mark.parametrize("tenure", [Tenure.HELD, Tenure.OVER])
async def test_without_one_it_is_told_what_to_do(door: Door, tenure: Tenure) -> None:
    door.rentals.tenure_now = tenure

    with pytest.raises(Refusal) as refused:
        await door.admit(None)

    assert (refused.value.slug, refused.value.status) == ("rental-required", 402)
    assert refused.value.as_dict()["quote"] == {"quote_id": "quo_1"}
    assert door.rentals.refused == [Tenant("acme", GPU)]
    assert door.store.jobs == {}
    assert door.meter.counted == {}, "no limit of the account's was reached"


async def test_what_was_admitted_is_replayed_when_the_rental_is_over_and_nothing_is_quoted(
    door: Door,
) -> None:
    first = await door.admit("k1")
    door.rentals.tenure_now = Tenure.OVER

    again = await door.admit("k1")

    assert (again.verdict, again.job.id) == (Verdict.REPLAYED, first.job.id)
    assert door.rentals.refused == []
    with pytest.raises(Refusal, match="Pay this"):
        await door.admit("k2")


async def test_a_request_that_is_bound_to_nothing_asks_nobody(door: Door) -> None:
    door.rentals.tenure_now = Tenure.OVER

    await door.admit("k1", gpu_instance_id=None)

    assert door.rentals.asked == []
    assert [new.queued_max for new in door.store.asked] == [None]


async def test_a_server_without_instances_knows_none(door: Door) -> None:
    door.has_instances = False

    with pytest.raises(Refusal) as refused:
        await door.admit("k1")

    assert refused.value.slug == "invalid-request"
    assert [problem.pointer for problem in refused.value.errors] == ["/gpu_instance_id"]


@pytest.mark.parametrize(("name", "count"), [(GPU, 0), ("gpu-1", 1), ("", 1), (GPU.replace("gpu", "cad"), 1)])
def test_what_no_instance_can_be_called_is_refused_with_all_the_rest(name: str, count: int) -> None:
    _, problems = read_options({"gpu_instance_id": name, "priority": 12}, Limits())

    assert [problem.pointer for problem in problems] == ["/priority", *["/gpu_instance_id"] * count]
