"""What was seen of a server from outside, written down as it was seen; `invariants` judges it.

history = History(path)
history.append(Ticket(key="k1", job_id="cad_1", at=time.time(), replayed=False, hooked=True))
...                             # crashes, restarts, retries; looks, logs, webhooks, files
assert faults(history) == []
"""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A client asked with a key and was given this job; `hooked`: its end is to be told by webhook.

    `at` is Unix seconds, when the answer had come.
    """

    key: str
    job_id: str
    at: float
    replayed: bool
    hooked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A client looked at a job. Times are Unix seconds; what only a 200 tells is None otherwise."""

    job_id: str
    code: int
    at: float
    status: str | None = None
    sequence: int | None = None
    attempt: int | None = None
    retained_until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a job's own log. `attempt`: of those that tell of one."""

    job_id: str
    sequence: int
    type: str
    attempt: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedLine:
    """A line of the account's feed, as a reader that keeps the last position met it."""

    reader: str
    position: int
    job_id: str
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A webhook arrived. `type` is its last word: `completed`, `failed`, `canceled`."""

    webhook_id: str
    job_id: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A file that a job's row names: whose attempt made it, and what its bytes are said to be."""

    job_id: str
    name: str
    epoch: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """A published file's bytes, as they lie in the artifact store."""

    job_id: str
    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The artifact store holds files of this attempt, published or not."""

    job_id: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """A client has asked for the removal of a job's files: from here on they may be gone."""

    job_id: str


Observation = Ticket | Look | Line | FeedLine | Hook | Published | Bytes | Kept | Removed
_KINDS = {
    kind.__name__: kind for kind in (Ticket, Look, Line, FeedLine, Hook, Published, Bytes, Kept, Removed)
}


class History:
    """Observations in the order in which they were made. Append-only, from any thread.

    With a path, each is a line of JSON in that file as soon as it is made.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._seen: list[Observation] = []
        self._lock = threading.Lock()

    def append(self, seen: Observation) -> None:
        """Write it down."""
        with self._lock:
            self._seen.append(seen)
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"kind": type(seen).__name__, **asdict(seen)}) + "\n")

    def __iter__(self) -> Iterator[Observation]:
        with self._lock:
            return iter(list(self._seen))

    @classmethod
    def read(cls, path: Path) -> History:
        """A history that was kept."""
        history = cls()
        for line in path.read_text(encoding="utf-8").splitlines():
            fields = json.loads(line)
            history.append(_KINDS[fields.pop("kind")](**fields))
        return history
