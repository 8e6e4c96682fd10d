from __future__ import annotations

from tempa.engines.host.bounds import Bounds
from tempa.jobs.ports import RunLimits

GIB = 1024**3
ZYGOTE_BYTES = 530_000_000  # a loaded OCCT


def test_the_address_space_is_a_backstop_far_above_the_memory_limit() -> None:
    bounds = Bounds.of(RunLimits(60.0, 2 * GIB), ZYGOTE_BYTES, cpu_count=2)
    assert bounds.address_space_bytes - ZYGOTE_BYTES >= 2 * bounds.memory_bytes


def test_the_address_space_counts_from_what_the_zygote_has() -> None:
    small = Bounds.of(RunLimits(60.0, GIB), 0, cpu_count=2)
    large = Bounds.of(RunLimits(60.0, GIB), ZYGOTE_BYTES, cpu_count=2)
    assert large.address_space_bytes - small.address_space_bytes == ZYGOTE_BYTES


def test_no_kernel_that_uses_every_cpu_to_its_time_limit_meets_the_cpu_limit() -> None:
    bounds = Bounds.of(RunLimits(0.4, GIB), ZYGOTE_BYTES, cpu_count=16)
    assert bounds.cpu_seconds > 0.4 * 16
    assert isinstance(bounds.cpu_seconds, int)  # setrlimit takes no fractions


def test_exhausted_means_past_the_memory_limit_or_at_the_end_of_the_address_space() -> None:
    bounds = Bounds(60.0, memory_bytes=1000, address_space_bytes=10_000, cpu_seconds=65)
    assert not bounds.exhausted(peak_rss_bytes=1000, peak_size_bytes=9_499)
    assert bounds.exhausted(peak_rss_bytes=1001, peak_size_bytes=0)
    assert bounds.exhausted(peak_rss_bytes=0, peak_size_bytes=9_500)
