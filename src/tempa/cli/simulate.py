"""`tempa webhooks simulate`: what an outage of a receiver comes to under the policy in force."""

from __future__ import annotations

import math
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempa.cli.exits import UsageFault
from tempa.cli.output import Json, print_json, wants_json
from tempa.cli.table import print_table
from tempa.cli.up import Config

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.webhooks.simulate import Scenario, Story
    from tempa.wiring.settings import Webhooks

OUTAGE_DAYS_MAX = 30
EVENTS_MAX = 1_000_000  # a minute and 240 MB, over a day (2 cores, measured)

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|[smhd])"
_DURATION = re.compile(rf"(?:{_PART})+")


def simulate(
    outage: Annotated[
        str, typer.Option(metavar="DURATION", help="How long the receiver is away, as 90s, 20m or 1h30m.")
    ] = "20m",
    events: Annotated[int, typer.Option(min=1, max=EVENTS_MAX, help="How many events arise.")] = 10_000,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="They arise evenly over so long; 0s: all at once. (default: the outage)"
        ),
    ] = None,
    capacity: Annotated[
        float, typer.Option(min=1, max=100_000, help="Requests a second that the receiver can take.")
    ] = 200,
    latency: Annotated[
        str, typer.Option(metavar="DURATION", help="How long it takes to answer, 1ms or more.")
    ] = "50ms",
    in_flight: Annotated[int, typer.Option(min=1, max=1024, help="Attempts to it under way at once.")] = 4,
    seed: Annotated[int, typer.Option(help="Another one throws the dice anew.")] = 1,
    max_retries: Annotated[int | None, typer.Option(help="Instead of webhooks.max_retries.")] = None,
    backoff_base: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Instead of webhooks.backoff_base_seconds.")
    ] = None,
    backoff_cap: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Instead of webhooks.backoff_cap_seconds.")
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Play an outage of a receiver on a virtual clock, under the settings a server here would use.

    Beside it the same outage under a common recipe: five tries in memory, and nothing else. Nothing is
    sent, nothing is stored; the same seed tells the same story.
    """
    from tempa.core.retry import RetryPolicy
    from tempa.webhooks.simulate import Scenario, play, play_recipe

    away = _away(outage)
    webhooks = _webhooks(config, max_retries, backoff_base, backoff_cap)
    scenario = Scenario(
        outage_seconds=away,
        events=events,
        over_seconds=_over(over, away),
        capacity_per_second=capacity,
        latency_seconds=_latency(latency, webhooks.timeout_seconds),
        in_flight_max=in_flight,
        seed=seed,
    )
    policy = RetryPolicy(webhooks.max_retries, webhooks.backoff_base_seconds, webhooks.backoff_cap_seconds)
    stories = play(scenario, policy), play_recipe(scenario)
    if wants_json(as_json):
        in_force, recipe = map(asdict, stories)
        documents = {"scenario": asdict(scenario), "policy": asdict(policy)}
        print_json({**documents, "in_force": in_force, "five_tries_in_memory": recipe})
    else:
        _print(scenario, policy.max_retries, stories)


def seconds_of(option: str, text: str) -> float:
    """A duration, as `90s`, `20m`, `1h30m`, `50ms`. Raises UsageFault."""
    if not _DURATION.fullmatch(text):
        raise UsageFault(f"{option}: {text!r} is no duration; write it as 90s, 20m, 24h, 1h30m or 50ms.")
    return math.fsum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text))


def _away(text: str) -> float:
    seconds = seconds_of("--outage", text)
    if not 0 < seconds <= OUTAGE_DAYS_MAX * _SECONDS["d"]:
        raise UsageFault(f"--outage: must be longer than nothing and at most {OUTAGE_DAYS_MAX}d.")
    return seconds


def _over(text: str | None, outage_seconds: float) -> float:
    seconds = outage_seconds if text is None else seconds_of("--over", text)
    if seconds > outage_seconds:
        raise UsageFault("--over: must not be longer than --outage.")
    return seconds


def _latency(text: str, timeout_seconds: float) -> float:
    seconds = seconds_of("--latency", text)
    if not 0.001 <= seconds < timeout_seconds:
        raise UsageFault(
            f"--latency: must be at least 1ms and less than webhooks.timeout_seconds ({timeout_seconds:g}s): "
            "a receiver that takes longer never takes anything."
        )
    return seconds


def _webhooks(config: Path | None, max_retries: int | None, base: str | None, cap: str | None) -> Webhooks:
    from tempa.wiring.settings import load_settings

    flags: dict[str, Any] = {
        "webhooks.max_retries": max_retries,
        "webhooks.backoff_base_seconds": base and seconds_of("--backoff-base", base),
        "webhooks.backoff_cap_seconds": cap and seconds_of("--backoff-cap", cap),
    }
    given = {name: value for name, value in flags.items() if value is not None}
    return load_settings(config, given).webhooks


def _print(scenario: Scenario, max_retries: int, stories: tuple[Story, Story]) -> None:
    print(
        f"{scenario.events} events over {_time(scenario.over_seconds)}, a receiver away for "
        f"{_time(scenario.outage_seconds)} that then takes {scenario.capacity_per_second:g} requests/s.\n"
    )
    columns = ("", f"{max_retries} retries, parked and paced", "five tries in memory")
    print_table(columns, list(zip(_MEASURES, *map(_cells, stories), strict=True)), "")


_MEASURES = (
    "delivered without anybody's help",
    "died of the outage",
    "  of these delivered by themselves later",
    "  of these left dead",
    "lost",
    "requests into the outage",
    "breaker opened after",
    "recovery noticed after",
    "busiest second / capacity",
    "rejected after the outage",
    "time to drain",
    "time to drain / ideal",
)


def _cells(story: Story) -> tuple[str, ...]:
    return (
        f"{story.delivered} of {story.events}",
        str(story.dead_letters),
        str(story.healed),
        str(story.left_dead),
        str(story.lost),
        str(story.requests_into_outage),
        _time(story.opened_after_seconds),
        _time(story.noticed_after_seconds),
        f"{story.peak_share:.2f}",
        f"{story.rejected_share:.1%}",
        _time(story.drain_seconds),
        "-" if story.drain_share is None else f"{story.drain_share:.2f}",
    )


def _time(seconds: float | None) -> str:
    """As one would say it; what never came is a dash."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)
