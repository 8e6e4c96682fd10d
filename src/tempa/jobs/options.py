"""What every job takes, whatever its engine: reading it, and the rules that its shape cannot say."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tempa.core.errors import Problem
from tempa.core.ids import is_id
from tempa.core.shapes import escape, shape_problems, whole
from tempa.jobs.instances import UNKNOWN_INSTANCE
from tempa.jobs.wire import WEBHOOK_EVENTS, JobOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tempa.core.limits import Limits

_TEXT_PATTERN = re.compile(r"[^\x00-\x1f\x7f]*")


def unknown_fields(document: Mapping[str, Any], known_fields: frozenset[str]) -> list[Problem]:
    """Fields that neither the route (`known_fields`) nor every job knows."""
    known = known_fields | JobOptions.model_fields.keys() | {"engine"}
    return [
        Problem("/" + escape(key), "This field is not known here. Known: " + ", ".join(sorted(known)) + ".")
        for key in document
        if key not in known
    ]


def read_options(document: Mapping[str, Any], limits: Limits) -> tuple[JobOptions | None, list[Problem]]:
    """The options of a request, and everything that is wrong with them; None: their shape is."""
    given = {key: whole(value) for key, value in document.items() if key in JobOptions.model_fields}
    try:
        options, problems = JobOptions.model_validate(given), []
    except ValidationError as error:
        options, problems = None, shape_problems(error)
    return options, [*problems, *_rule_problems(document, limits)]


def _rule_problems(document: Mapping[str, Any], limits: Limits) -> Iterator[Problem]:
    """The rules that the shape of `JobOptions` cannot say, for the fields that can be read."""
    yield from _limit_problems(document, limits)
    tags = document.get("tags")
    if isinstance(tags, dict):
        yield from _tag_problems(tags, limits)
    yield from _event_problems(document)
    instance = document.get("gpu_instance_id")
    if isinstance(instance, str) and not is_id(instance, "gpu"):
        yield UNKNOWN_INSTANCE


def _event_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    events = document.get("webhook_events")
    if not isinstance(events, list):
        return
    for index, name in enumerate(events):
        if isinstance(name, str) and name not in WEBHOOK_EVENTS:
            known = ", ".join(WEBHOOK_EVENTS)
            yield Problem(f"/webhook_events/{index}", f"Not an event. Known: {known}.")
    if document.get("webhook_url") is None:
        yield Problem("/webhook_events", "Needs a webhook_url to send these events to.")


def _limit_problems(document: Mapping[str, Any], limits: Limits) -> Iterator[Problem]:
    url, seconds = document.get("webhook_url"), document.get("deadline_seconds")
    if isinstance(url, str) and len(url) > limits.url_length_max:
        most = limits.url_length_max
        yield Problem("/webhook_url", f"String should have at most {most} characters.", most)
    if isinstance(seconds, (int, float)) and limits.deadline_seconds_max < seconds < math.inf:
        most = limits.deadline_seconds_max
        yield Problem("/deadline_seconds", f"Input should be less than or equal to {most}.", most)


def _tag_problems(tags: Mapping[str, Any], limits: Limits) -> list[Problem]:
    problems = []
    if len(tags) > limits.tags_max:
        problems.append(Problem("/tags", f"At most {limits.tags_max} tags.", limits.tags_max))
    for name, value in tags.items():
        pointer = "/tags/" + escape(name)
        if not 1 <= len(name) <= limits.tag_name_length_max:
            most = limits.tag_name_length_max
            problems.append(Problem(pointer, f"A tag's name has 1 to {most} characters.", most))
        if isinstance(value, str) and len(value) > limits.tag_value_length_max:
            most = limits.tag_value_length_max
            problems.append(Problem(pointer, f"A tag's value has at most {most} characters.", most))
        if _TEXT_PATTERN.fullmatch(name + (value if isinstance(value, str) else "")) is None:
            problems.append(Problem(pointer, "A tag has no control characters."))
    return problems
