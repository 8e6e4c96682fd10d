"""`tempa webhooks simulate`: an outage in words and numbers, under the settings in force."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tempa.cli.exits import UsageFault
from tempa.cli.simulate import seconds_of

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Terminal

HOWTO = Path(__file__).parents[3] / "docs" / "howto" / "webhook-outages.md"
FEW = ("webhooks", "simulate", "--outage", "2m", "--events", "300")


def simulated(tempa: Terminal, *options: str) -> Any:
    result = tempa.run(*FEW, *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("20m", 1200), ("24h", 86_400), ("1h30m", 5400), ("2d", 172_800), ("50ms", 0.05),
        ("1.5s", 1.5), ("0s", 0), ("1m500ms", 60.5),
    ],
)  # fmt: skip
def test_durations_are_written_as_people_write_them(text: str, seconds: float) -> None:
    assert seconds_of("--outage", text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "20", "m", "20 m", "-5s", "1e3s", "5min", "20m!", "٣s", "1..5s", "9" * 400 + "s"]
)
def test_what_is_no_duration_is_told_with_the_option(text: str) -> None:
    with pytest.raises(UsageFault, match=r"--outage: .* is no duration; write it as 90s, 20m"):
        seconds_of("--outage", text)


def test_a_pipe_gets_both_stories_and_what_they_were_told_under(tempa: Terminal) -> None:
    answer = simulated(tempa)
    assert answer["scenario"]["outage_seconds"] == answer["scenario"]["over_seconds"] == 120
    assert answer["policy"] == {"max_retries": 5, "base_seconds": 2, "cap_seconds": 60}
    in_force, recipe = answer["in_force"], answer["five_tries_in_memory"]
    assert (in_force["delivered"], in_force["lost"]) == (300, 0)
    assert recipe["left_dead"] > 200
    assert recipe["requests_into_outage"] > 10 * in_force["requests_into_outage"]


def test_a_person_gets_a_table(tempa: Terminal) -> None:
    shown = tempa.show(*FEW).stdout
    assert "300 events over 2 min, a receiver away for 2 min that then takes 200 requests/s." in shown
    rows = {line[:40].strip(): line[40:].split("  ") for line in shown.splitlines()}
    assert "300 of 300" in rows["delivered without anybody's help"]
    assert "lost" in rows


def test_the_page_shows_what_its_command_shows(tempa: Terminal) -> None:
    blocks = HOWTO.read_text(encoding="utf-8").split("```")
    at = next(place for place, block in enumerate(blocks) if "--outage 20m" in block)
    words = blocks[at].removeprefix("sh\ntempa ").split()
    assert blocks[at + 2].strip() == tempa.show(*words).stdout.strip()


@pytest.mark.parametrize(
    "line", [line for line in HOWTO.read_text().splitlines() if line.startswith("tempa ")]
)
def test_every_command_of_the_page_is_one(tempa: Terminal, line: str) -> None:
    words = line.partition("#")[0].split()[1:]
    small = ("--events", "12", "--outage", "1h") if "24h" in words else ()  # the last one given counts
    assert tempa.run(*words, *small).exit_code == 0


def test_flags_stand_over_the_settings(
    tempa: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "tempa.toml"
    config.write_text("[webhooks]\nmax_retries = 7\nbackoff_base_seconds = 1.0\n")
    monkeypatch.setenv("TEMPA_WEBHOOKS__BACKOFF_CAP_SECONDS", "30")
    given = ("--config", str(config))
    assert simulated(tempa, *given)["policy"] == {"max_retries": 7, "base_seconds": 1, "cap_seconds": 30}
    flags = ("--max-retries", "2", "--backoff-base", "500ms", "--backoff-cap", "1m")
    expected = {"max_retries": 2, "base_seconds": 0.5, "cap_seconds": 60}
    assert simulated(tempa, *given, *flags)["policy"] == expected


def test_no_wait_at_all_is_a_policy_too(tempa: Terminal) -> None:
    assert simulated(tempa, "--outage", "1s", "--backoff-base", "0s")["policy"]["base_seconds"] == 0


def test_the_scenario_is_what_was_asked_for(tempa: Terminal) -> None:
    asked = ("--over", "0s", "--capacity", "50", "--latency", "20ms", "--in-flight", "8", "--seed", "3")
    assert simulated(tempa, *asked)["scenario"] == {
        "outage_seconds": 120, "events": 300, "over_seconds": 0, "capacity_per_second": 50,
        "latency_seconds": 0.02, "in_flight_max": 8, "seed": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--outage", "20"), "--outage: '20' is no duration"),
        (("--outage", "0s"), "--outage: must be longer than nothing and at most 30d."),
        (("--outage", "31d"), "--outage: must be longer than nothing and at most 30d."),
        (("--over", "3m"), "--over: must not be longer than --outage."),
        (("--latency", "0s"), "--latency: must be at least 1ms and less than webhooks.timeout_seconds (10s)"),
        (
            ("--latency", "10s"),
            "--latency: must be at least 1ms and less than webhooks.timeout_seconds (10s)",
        ),
        (("--backoff-base", "2"), "--backoff-base: '2' is no duration"),
        (("--max-retries", "99"), "webhooks.max_retries: "),
    ],
)
def test_what_cannot_be_played_is_said(tempa: Terminal, options: tuple[str, ...], words: str) -> None:
    result = tempa.run(*FEW, *options)
    assert result.exit_code == 2
    assert words in result.output
