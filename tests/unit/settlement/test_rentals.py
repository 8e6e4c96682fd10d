"""What an instance's status is at a moment, whether or not anybody has noticed its end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tempa.settlement.model import InstanceStatus
from tempa.settlement.rentals import GpuInstance, Rental

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
RENTAL = Rental(
    gpu_instance_id="gpu_1",
    account="acme",
    started_at=NOW - timedelta(hours=1),
    expires_at=NOW,
    seconds=3_600,
    is_in_grace=False,
    quote_id="quo_1",
    signature="S",
)
INSTANCE = GpuInstance(id="gpu_1", name="H200", prices=(), created_at=NOW, suspended_at=None, rental=RENTAL)


def test_an_end_counts_from_its_very_second() -> None:
    assert INSTANCE.status(NOW - timedelta(milliseconds=1)) is InstanceStatus.ACTIVE
    assert INSTANCE.status(NOW) is InstanceStatus.GRACE
    assert INSTANCE.renter == "acme"


def test_when_the_grace_is_over_there_is_no_renter() -> None:
    ended = replace(INSTANCE, rental=replace(RENTAL, ended_at=NOW))

    assert ended.status(NOW) is InstanceStatus.EXPIRED
    assert ended.renter is None


def test_what_was_never_rented_is_available() -> None:
    fresh = replace(INSTANCE, rental=None)

    assert (fresh.status(NOW), fresh.renter) == (InstanceStatus.AVAILABLE, None)


def test_a_suspension_comes_before_all_else() -> None:
    suspended = replace(INSTANCE, suspended_at=NOW)

    assert suspended.status(NOW) is InstanceStatus.SUSPENDED
    assert suspended.renter == "acme"
