"""What is left of a job, by what past ones took."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.jobs.estimates import estimate, quantile
from tempa.jobs.model import PastJob, Status
from tests.unit.jobs.samples import a_job

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
PAST = [PastJob(20.0, 5.0), PastJob(40.0, 10.0), PastJob(60.0, 15.0)]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0, 1))
def test_a_quantile_is_that_of_numpy(sample: list[float], share: float) -> None:
    ordered = sorted(sample)
    assert quantile(ordered, share) == pytest.approx(float(np.quantile(ordered, share)), abs=1e-6, rel=1e-12)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_the_middle_one_is_the_median(sample: list[float]) -> None:
    assert quantile(sorted(sample), 0.5) == pytest.approx(statistics.median(sample), rel=1e-12)


def test_a_job_that_waits_long_still_has_its_run_before_it() -> None:
    job = a_job(status=Status.QUEUED, created_at=NOW - timedelta(hours=1))
    found = estimate(job, PAST, NOW)
    assert found is not None
    assert found.median_seconds == 10.0
    assert found.range_seconds == (6.0, 14.0)


@given(
    st.lists(
        st.tuples(st.floats(0, 1e5), st.floats(0, 1e5)).map(lambda pair: PastJob(sum(pair), pair[1])),
        min_size=1,
    ),
    st.floats(0, 1e6),
    st.sampled_from([Status.QUEUED, Status.PROCESSING]),
)
def test_an_interval_holds_the_median_and_is_never_below_nothing(
    past: list[PastJob], age_seconds: float, status: Status
) -> None:
    since = NOW - timedelta(seconds=age_seconds)
    started = since if status is Status.PROCESSING else None
    found = estimate(a_job(status=status, created_at=since, started_at=started), past, NOW)
    assert found is not None
    low, high = found.range_seconds
    assert 0 <= low <= found.median_seconds <= high


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.CANCELED])
def test_what_has_ended_has_nothing_left(status: Status) -> None:
    assert estimate(a_job(status=status), PAST, NOW) is None


def test_nothing_is_learned_from_nothing() -> None:
    assert estimate(a_job(status=Status.QUEUED), [], NOW) is None
