"""Appending to a job's log, inside the transaction that the events tell of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql import encode
from tempa.core.ids import new_id
from tempa.core.work import EVENTS, job_topic
from tempa.jobs import events

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tempa.jobs.model import Stage


@dataclass(frozen=True, slots=True)
class Entry:
    """An event before it has its number."""

    type: str
    parts: events.Parts


def stage_entries(stages: Iterable[Stage]) -> list[Entry]:
    """A `job.stage` for each stage reached, in order."""
    return [Entry("job.stage", events.stage(stage)) for stage in stages]


def event_rows(
    entries: Sequence[Entry], *, account: str, job_id: str, last: int, now: int, event_id: str | None = None
) -> list[dict[str, Any]]:
    """Rows for `insert_event`, the last with sequence `last`: the job's row has counted them already."""
    rows = []
    for sequence, entry in enumerate(entries, start=last - len(entries) + 1):
        body, announce = entry.parts
        rows.append(
            {
                "id": event_id or new_id("evt"),
                "account": account,
                "job_id": job_id,
                "sequence": sequence,
                "type": entry.type,
                "at": now,
                "body": encode(body),
                "announce": None if announce is None else encode(announce),
            }
        )
    return rows


def told_text(entries: Iterable[Entry]) -> str:
    """Several of `told`, as one parameter.

    The documents in it are text in JSON text: read as parts of it, PostgreSQL would refuse a U+0000 in them.
    """
    return encode([told(entry) for entry in entries])


def told(entry: Entry, prefix: str = "") -> dict[str, str | None]:
    """An event for a query that numbers it by the job's row that it writes."""
    body, announce = entry.parts
    return {
        f"{prefix}id": new_id("evt"),
        f"{prefix}type": entry.type,
        "body": encode(body),
        "announce": None if announce is None else encode(announce),
    }


def log_topics(job_id: str) -> tuple[str, str]:
    """What is rung when a job's log has grown."""
    return job_topic(job_id), EVENTS
