"""The harness: who is compared with whom, what is printed of it, and the twin harnesses of both languages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from bench.probes import Weather
from bench.process import Broken
from bench.queue import rounds
from bench.queue.rounds import COMPARISONS, Comparison, Sheet
from bench.queue.trial import Asked, Found, System
from bench.ratios import Goal
from bench.table import Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOBS = {"admission": 1000, "drain": 1000, "pickup": 100}
AT_LEAST_TWICE = Comparison("admission", "ours", "theirs", Goal(2, at_least=True))


@dataclass(frozen=True)
class NoService:
    """Nothing to stand on."""

    settings: str = ""
    pid: None = None

    def fresh(self) -> Iterator[str]:
        raise AssertionError("nothing is measured here")


def system(name: str, durability: str = "flushed") -> System:
    return System(
        name=name,
        command=(),
        service=NoService(),  # type: ignore[arg-type]
        durability=durability,
        settings="",
        jobs=JOBS,
    )


@pytest.fixture
def sheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sheet:
    """Two systems: ours takes 1 s for all, theirs 3 s; the disk is steady."""
    monkeypatch.setattr(rounds, "COMPARISONS", (AT_LEAST_TWICE,))
    monkeypatch.setattr(rounds, "weather", lambda folder: Weather(1000.0, 0.5))
    seconds = {"ours": 1.0, "theirs": 3.0}
    monkeypatch.setattr(
        rounds,
        "measure",
        lambda of, asked: Found(asked.jobs, seconds[of.name], (), cpu_seconds_per_1000=0.25),
    )
    return Sheet({name: system(name) for name in seconds}, tmp_path, scale=1.0)


def verdict(sheet: Sheet) -> str:
    (row,) = sheet.ratio_rows()
    return row.text()


def test_rates_are_compared_pair_by_pair(sheet: Sheet) -> None:
    sheet.run(3)
    (row,) = sheet.ratio_rows()
    assert row.counted == [3.0, 3.0, 3.0]
    assert " met" in row.text()


def test_a_missed_goal_is_printed_as_missed(sheet: Sheet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "measure", lambda of, asked: Found(asked.jobs, 1.0, (), 0.25))
    sheet.run(1)
    assert "MISSED" in verdict(sheet)


def test_a_void_pair_is_taken_once_more_and_counted_as_void(
    sheet: Sheet, monkeypatch: pytest.MonkeyPatch
) -> None:
    speeds = iter([1000.0, 1000.0, 5000.0, 900.0, 1000.0, 1000.0])
    monkeypatch.setattr(rounds, "weather", lambda folder: Weather(next(speeds), 0.5))
    sheet.run(1)
    (row,) = sheet.ratio_rows()
    assert (row.counted, row.void) == ([3.0], 1)


def test_systems_of_another_durability_are_not_compared(sheet: Sheet) -> None:
    sheet.systems = {"ours": system("ours"), "theirs": system("theirs", "one second")}
    sheet.run(1)
    (row,) = sheet.ratio_rows()
    assert row.counted == ()
    assert "not compared" in row.text()


def test_a_system_that_breaks_is_told_and_costs_its_own_row_only(
    sheet: Sheet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(of: System, asked: Asked) -> Found:
        if of.name == "theirs":
            raise Broken("theirs, admission: no module of that name")
        return Found(asked.jobs, 1.0, (), 0.25)

    monkeypatch.setattr(rounds, "measure", measure)
    sheet.run(1)
    assert "no module of that name" in capsys.readouterr().out
    assert "not run" in verdict(sheet)
    ours, theirs = sheet.figure_rows("admission")
    assert (ours.counted, theirs.counted) == ([1000.0], ())
    assert "not run" in theirs.text()


def test_a_system_that_cannot_be_had_leaves_its_goal_in_the_table(sheet: Sheet) -> None:
    sheet.systems = {"ours": system("ours")}
    sheet.run(1)
    assert "not run" in verdict(sheet)
    assert ">= 2" in verdict(sheet)


def test_no_goal_is_set_across_durabilities() -> None:
    everysec = "BullMQ everysec"
    assert all(each.goal is None for each in COMPARISONS if everysec in {each.ours, each.theirs})


def test_a_row_tells_its_median_range_goal_and_note() -> None:
    text = Row("what", [9.0, 1.0, 2.5], Goal(3, at_least=False), 2, "a note").text()
    assert "2.50 (1.00 - 9.00)" in text
    assert "<= 3" in text
    assert " met " in text
    assert "2 void; a note" in text
