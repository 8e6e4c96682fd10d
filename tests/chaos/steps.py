"""Every crash point in the source, and what makes a server pass it."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tempa

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.chaos.story import Story

SOURCE = Path(tempa.__file__).parent
_CALL = re.compile(r'\bcrash_point\("([a-z_]+\.[a-z_]+)"\)')

EMBEDDED_ONLY = frozenset({"start.locked", "start.voided", "credentials.written"})
"""PostgreSQL's processes take no lock and void nothing; which of them writes the credentials is chance."""

LAPSING = {"TEMPA_JOBS__RETENTION_DAYS": "1e-5", "TEMPA_JOBS__FILE_RETENTION_DAYS": "1e-5"}
"""Less than a second."""

_LONG_AGO_SECONDS = 7200
_COMMANDS = SOURCE / "adapters" / "stores" / "commands"
_PAID_COMMANDS = frozenset(
    _COMMANDS / f"{name}.py" for name in ("allocations", "inbox", "ledger", "refunds", "rentals")
)


def labels() -> list[str]:
    """All labels that a server passes for jobs and webhooks, in order."""
    return sorted({label for path in SOURCE.rglob("*.py") if not _is_paid(path) for label in _of(path)})


def payment_labels() -> list[str]:
    """All labels that a server passes for payments: tests/chaos/market.py leads to them."""
    return sorted({label for path in SOURCE.rglob("*.py") if _is_paid(path) for label in _of(path)})


def _of(path: Path) -> list[str]:
    return _CALL.findall(path.read_text())


def _is_paid(path: Path) -> bool:
    return path.parent == SOURCE / "settlement" or path in _PAID_COMMANDS


@dataclass(frozen=True)
class Step:
    """How a crash point is reached: what to ask of the server again and again, and what must be before."""

    stir: Callable[[Story], None]
    before: Callable[[Story], None] | None = None


def step_of(label: str) -> Step:
    """The step that leads to a label."""
    return _STEPS.get(label, _MIXED)


def passages_max(label: str) -> int:
    """How often it is passed soon enough by a server that is stirred."""
    return 3 if label.partition(".")[0] in _PASSED_BY_EVERY_JOB else 1


_PASSED_BY_EVERY_JOB = frozenset(
    {"admit", "beat", "child", "claim", "commit", "delivery", "done", "fan_out", "keep", "settle", "stage"}
)


def _mixed(story: Story) -> None:
    """New work, equal work, a key that was used before, a job that goes on for long."""
    client = story.client
    story.hold()
    client.ask(story.key(), client.body({"do": "finish", "n": story.number}))
    client.ask(story.key(), client.body({"do": "finish", "n": 0}))
    if (key := story.used_key()) is not None:
        client.ask(key)
    client.read_feed()


def _hold_all(story: Story) -> None:
    """Jobs that go on for long at every worker, and so at each of the victims."""
    story.hold_all()
    _mixed(story)


def _upload(story: Story) -> None:
    story.client.upload(b"solid\n" * story.number)


def _bring_a_picture(story: Story) -> None:
    """A job with an input of its own."""
    client = story.client
    client.ask(story.key(), client.picture_body(story.number))


def _remove(story: Story) -> None:
    client = story.client
    job_id = client.ask(story.key(), client.body({"do": "finish", "n": story.number}))
    client.wait_for_end(job_id)
    client.remove(job_id)


def _redrive(story: Story) -> None:
    client = story.client
    client.ask(story.key(), client.body({"do": "finish", "n": story.number}, hook="/status/404"))
    client.redrive()


def _cancel_queued(story: Story) -> None:
    story.fill()
    client = story.client
    client.cancel(client.ask(story.key(), client.body({"do": "finish", "n": story.number}, priority=0)))


def _cancel_running(story: Story) -> None:
    job_id = story.hold()
    story.client.wait_past(job_id, "queued")
    story.client.cancel(job_id)


def _miss_a_deadline(story: Story) -> None:
    story.fill()
    client = story.client
    parameters = {"do": "finish", "n": story.number}
    client.ask(story.key(), client.body(parameters, priority=0, deadline_seconds=0.2))


def _drain(story: Story) -> None:
    story.fill()
    story.house.tell_to_go()


def _leave_work(story: Story) -> None:
    """Jobs run on all slots when the victims are killed."""
    story.house.start()
    story.fill()


def _let_lapse(story: Story) -> None:
    """A job and an upload whose retention is over."""
    story.house.start(settings=LAPSING)
    client = story.client
    client.upload(b"solid\n")
    job_id = client.ask(story.key(), client.body({"do": "finish", "n": story.number}, hook=None))
    while (seen := client.look(job_id)) is None or seen.code == 200:
        story.check_patience()


def _leave_an_orphan(story: Story) -> None:
    """Bytes whose row was never written, and that look old."""
    story.crash("upload.stored")
    then = time.time() - _LONG_AGO_SECONDS
    for path in (story.house.data_dir / "artifacts").rglob("*"):
        os.utime(path, (then, then))


_MIXED = Step(_mixed)
_STEPS = {
    **{f"beat.{what}": Step(_hold_all) for what in ("asked", "in_commit", "answered")},
    **{f"upload.{what}": Step(_upload) for what in ("flushed", "moved", "stored", "recorded")},
    "inputs.kept": Step(_bring_a_picture),
    **{f"rescue.{what}": Step(_mixed, _leave_work) for what in ("seen", "taken")},
    **{f"clean.{what}": Step(_mixed, _let_lapse) for what in ("job_deleted", "file_deleted")},
    "sweep.deleted": Step(_mixed, _leave_an_orphan),
    "remove.deleted": Step(_remove),
    "delete.removed": Step(_remove),
    "redrive.slice": Step(_redrive),
    "cancel.in_commit": Step(_cancel_queued),
    "cancel.wish_in_commit": Step(_cancel_running),
    "cancel.committed": Step(_cancel_running),
    "expire.seen": Step(_miss_a_deadline),
    "drain.begun": Step(_drain),
    "release.decided": Step(_drain),
}
