from __future__ import annotations

import pytest

from tempa.engines.splat.triposplat.shortage import DeviceMemory, out_of_memory

GIB = 1 << 30


def memory(*, others: float, total: int = 16 * GIB, own: int = 6 * GIB) -> DeviceMemory:
    held = round(others * total)
    return DeviceMemory(total, max(0, total - own - held), own, own + 7)


@pytest.mark.parametrize(("others", "again"), [(0.0, False), (0.09, False), (0.11, True), (0.6, True)])
def test_it_is_worth_another_try_where_others_held_a_tenth(others: float, *, again: bool) -> None:
    assert out_of_memory(memory(others=others), "sampling", [65_536]).retryable is again


def test_the_figures_are_told() -> None:
    assert out_of_memory(memory(others=0.25), "decoding", [131_072]).detail == {
        "stage": "decoding",
        "peak_bytes": 6 * GIB + 7,
        "free_bytes": 6 * GIB,
        "total_bytes": 16 * GIB,
        "other_bytes": 4 * GIB,
        "suggest": {"num_gaussians": 65_536},
    }


def test_who_held_it_is_told() -> None:
    assert (
        "other programs held 4.0 GiB of its 16.0 GiB" in out_of_memory(memory(others=0.25), "x", [1]).message
    )
    assert "than the GPU has (16.0 GiB)" in out_of_memory(memory(others=0.0), "x", [1]).message


@pytest.mark.parametrize(
    ("counts", "fewer"), [([262_144, 32_768], 131_072), ([65_000], 32_768), ([40_000], 32_768)]
)
def test_half_as_many_are_suggested_down_to_what_the_model_knows(counts: list[int], fewer: int) -> None:
    error = out_of_memory(memory(others=0.0), "decoding", counts)
    assert error.detail["suggest"] == {"num_gaussians": fewer}
    assert error.hint is not None
    assert str(fewer) in error.hint


@pytest.mark.parametrize(("stage", "count"), [("decoding", 32_768), ("sampling", 262_144)])
def test_nothing_is_suggested_that_would_not_help(stage: str, count: int) -> None:
    assert "suggest" not in out_of_memory(memory(others=0.0), stage, [count]).detail


def test_what_torch_counts_twice_is_nobody_elses() -> None:
    assert DeviceMemory(8 * GIB, 3 * GIB, 6 * GIB, 0).others_bytes == 0
