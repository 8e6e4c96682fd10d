"""What must hold of a server's history, whatever died in between.

Whoever writes the history looks at everything once more when all is quiet: what a rule needs and does
not find is a fault too. The rules read nothing but the history: one that was kept can be judged again.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

from tempa.core.events import TERMINAL_EVENTS
from tempa.testing.history import Bytes, FeedLine, Hook, Kept, Line, Look, Published, Removed, Ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tempa.testing.history import Observation

TERMINAL = frozenset(event.removeprefix("job.") for event in TERMINAL_EVENTS)
GONE = 410


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that does not hold, of which job (or key, reader, webhook), and how."""

    rule: str
    of: str
    words: str


def faults(history: Iterable[Observation]) -> list[Fault]:
    """All that is wrong, by rule. An empty history has nothing wrong with it."""
    seen = _Seen(tuple(history))
    return [Fault(rule.__name__, of, words) for rule in RULES for of, words in rule(seen)]


class _Seen:
    """The history by kind and job."""

    def __init__(self, history: Sequence[Observation]) -> None:
        self.tickets = [one for one in history if isinstance(one, Ticket)]
        self.hooks = [one for one in history if isinstance(one, Hook)]
        self.published = [one for one in history if isinstance(one, Published)]
        self.kept = [one for one in history if isinstance(one, Kept)]
        self.bytes = {(one.job_id, one.name): one.sha256 for one in history if isinstance(one, Bytes)}
        self.removed = {one.job_id for one in history if isinstance(one, Removed)}
        self.looks: dict[str, list[Look]] = defaultdict(list)
        self.lines: dict[str, dict[int, set[Line]]] = defaultdict(lambda: defaultdict(set))
        self.feeds: dict[str, list[FeedLine]] = defaultdict(list)
        self.looks_after: dict[str, list[Look]] = {}  # of each job, since its first ticket
        for one in history:
            self._sort(one)

    def _sort(self, one: Observation) -> None:
        match one:
            case Ticket():
                self.looks_after.setdefault(one.job_id, [])
            case Look():
                self.looks[one.job_id].append(one)
                self.looks_after.get(one.job_id, []).append(one)
            case Line():
                self.lines[one.job_id][one.sequence].add(one)
            case FeedLine():
                self.feeds[one.reader].append(one)

    def end(self, job_id: str) -> Look | None:
        """The last look that found the job."""
        return next((look for look in reversed(self.looks[job_id]) if look.status is not None), None)

    def lapsed(self, job_id: str) -> bool:
        """Whether the last look met a job whose retention had ended."""
        looks = self.looks[job_id]
        return bool(looks) and looks[-1].code == GONE

    def retained_until(self, job_id: str) -> float:
        """When its retention ends, as it was told; for ever, if that was never heard."""
        told = (look.retained_until for look in self.looks[job_id] if look.retained_until is not None)
        return next(told, inf)

    def standing(self) -> Iterator[tuple[str, Look | None]]:
        """The promised jobs that can still be read, each with its end."""
        for job_id in self.looks_after:
            if not self.lapsed(job_id):
                yield job_id, self.end(job_id)

    def log(self, job_id: str) -> list[Line]:
        """Its lines in order; of a number that was read twice and differently, both."""
        lines = self.lines.get(job_id, {})
        return [
            line for sequence in sorted(lines) for line in sorted(lines[sequence], key=lambda it: it.type)
        ]


def every_ticket_stands(seen: _Seen) -> Iterator[tuple[str, str]]:
    """A job that was promised is found, until its retention ends; and it has been looked for."""
    for job_id, looks in seen.looks_after.items():
        until = seen.retained_until(job_id)
        if not looks:
            yield job_id, "nobody looked at it again"
        for look in looks:
            if look.code != 200 and not (look.code == GONE and look.at >= until):
                yield job_id, f"a look was answered with {look.code} before its retention ended"


def one_key_one_job(seen: _Seen) -> Iterator[tuple[str, str]]:
    """The same key is the same job, however often it is asked with, until that job's retention ends."""
    holders: dict[str, str] = {}
    for ticket in seen.tickets:
        holder = holders.setdefault(ticket.key, ticket.job_id)
        if holder != ticket.job_id and ticket.at < seen.retained_until(holder):
            yield ticket.key, f"it was answered with {holder} and with {ticket.job_id}"
        holders[ticket.key] = ticket.job_id
    first = [ticket.job_id for ticket in seen.tickets if not ticket.replayed]
    for job_id in {job_id for job_id in first if first.count(job_id) > 1}:
        yield job_id, "it was given as new more than once"


def every_job_ends(seen: _Seen) -> Iterator[tuple[str, str]]:
    """When all is quiet each job is terminal."""
    for job_id, end in seen.standing():
        if end is not None and end.status not in TERMINAL:
            yield job_id, f"it is still {end.status}"


def terminal_is_final(seen: _Seen) -> Iterator[tuple[str, str]]:
    """After its end a job does not change."""
    for job_id, looks in seen.looks.items():
        ends = {(it.status, it.sequence, it.attempt) for it in _from_the_end_on(looks)}
        if len(ends) > 1:
            yield job_id, f"it was seen as {sorted(map(str, ends))} after its end"


def _from_the_end_on(looks: Sequence[Look]) -> Sequence[Look]:
    found = [look for look in looks if look.status is not None]
    first = next((n for n, look in enumerate(found) if look.status in TERMINAL), len(found))
    return found[first:]


def one_terminal_event(seen: _Seen) -> Iterator[tuple[str, str]]:
    """A job that has ended has one event that says so, its last one, and it says what the job says."""
    for job_id, end in seen.standing():
        log = seen.log(job_id)
        if end is None or end.status not in TERMINAL:
            continue
        told = [line.type for line in log if line.type in TERMINAL_EVENTS]
        if told != [f"job.{end.status}"] or log[-1].type not in TERMINAL_EVENTS:
            yield job_id, f"it is {end.status}, and its log ends {[line.type for line in log][-3:]}"


def sequences_have_no_gaps(seen: _Seen) -> Iterator[tuple[str, str]]:
    """A job's events are numbered 1, 2, 3 ..., each is the same to all readers, and the job counts them."""
    for job_id, end in seen.standing():
        log = seen.log(job_id)
        numbers = [line.sequence for line in log]
        if numbers != list(range(1, len(numbers) + 1)):
            yield job_id, f"its events are numbered {numbers}"
        if end is not None and end.status in TERMINAL and end.sequence != len(set(numbers)):
            yield job_id, f"it counts {end.sequence} events and has {len(set(numbers))}"


def one_claim_an_epoch(seen: _Seen) -> Iterator[tuple[str, str]]:
    """Attempts are claimed one after the other: 1, 2, 3 ..., and the job names the last."""
    for job_id, end in seen.standing():
        claims = [line.attempt for line in seen.log(job_id) if line.type == "job.started"]
        if claims != list(range(1, len(claims) + 1)):
            yield job_id, f"its attempts were claimed as {claims}"
        if end is not None and end.status in TERMINAL and end.attempt != len(claims):
            yield job_id, f"it ended in attempt {end.attempt}, after {len(claims)} claims"


def no_run_without_a_claim(seen: _Seen) -> Iterator[tuple[str, str]]:
    """Files are kept by attempts that were claimed, and by no others."""
    for kept in seen.kept:
        claims = [line.attempt for line in seen.log(kept.job_id) if line.type == "job.started"]
        if kept.epoch not in claims and not seen.lapsed(kept.job_id):
            yield kept.job_id, f"attempt {kept.epoch} kept files and was never claimed"


def the_winner_publishes(seen: _Seen) -> Iterator[tuple[str, str]]:
    """A completed job's files are those of the attempt that ended it; no other job has any."""
    named: dict[str, set[int]] = defaultdict(set)
    for one in seen.published:
        named[one.job_id].add(one.epoch)
    for job_id, end in seen.standing():
        if end is None:
            continue
        due = {end.attempt} if end.status == "completed" else set()
        if named[job_id] != due:
            yield job_id, f"{end.status} in attempt {end.attempt}, with files of {sorted(named[job_id])}"


def bytes_are_as_told(seen: _Seen) -> Iterator[tuple[str, str]]:
    """A published file is there, with the SHA-256 that was told, unless its job was removed."""
    for one in seen.published:
        if one.job_id in seen.removed or seen.lapsed(one.job_id):
            continue
        found = seen.bytes.get((one.job_id, one.name))
        if found != one.sha256:
            yield one.job_id, f"{one.name} is {found}, and was told as {one.sha256}"


def each_end_is_told_once(seen: _Seen) -> Iterator[tuple[str, str]]:
    """The end of a job with a webhook arrives: any number of times, under one webhook-id of its own."""
    ids: dict[str, set[str]] = defaultdict(set)
    types: dict[str, set[str]] = defaultdict(set)
    jobs: dict[str, set[str]] = defaultdict(set)
    for hook in seen.hooks:
        ids[hook.job_id].add(hook.webhook_id)
        types[hook.job_id].add(hook.type)
        jobs[hook.webhook_id].add(hook.job_id)
    for job_id in {ticket.job_id for ticket in seen.tickets if ticket.hooked}:
        end = seen.end(job_id)
        if end is not None and (len(ids[job_id]) != 1 or types[job_id] != {end.status}):
            told = f"{len(ids[job_id])} ids, {sorted(types[job_id])}"
            yield job_id, f"it is {end.status}, and was told by webhook as {told}"
    for webhook_id, told_of in jobs.items():
        if len(told_of) > 1:
            yield webhook_id, f"it tells of {len(told_of)} jobs"


def the_feed_goes_on(seen: _Seen) -> Iterator[tuple[str, str]]:
    """A reader's positions grow."""
    for reader, lines in seen.feeds.items():
        for before, after in pairwise(lines):
            if after.position <= before.position:
                yield reader, f"position {after.position} came after {before.position}"


def the_feed_misses_nothing(seen: _Seen) -> Iterator[tuple[str, str]]:
    """Each reader meets every event of every log, once."""
    due = {(line.job_id, line.sequence) for job_id in seen.lines for line in seen.log(job_id)}
    for reader, lines in seen.feeds.items():
        met = [(line.job_id, line.sequence) for line in lines]
        if len(met) != len(set(met)):
            yield reader, "it met an event twice"
        if missed := due - set(met):
            yield reader, f"it missed {len(missed)} events, {min(missed)} among them"


RULES: tuple[Callable[[_Seen], Iterator[tuple[str, str]]], ...] = (
    every_ticket_stands,
    one_key_one_job,
    every_job_ends,
    terminal_is_final,
    one_terminal_event,
    sequences_have_no_gaps,
    one_claim_an_epoch,
    no_run_without_a_claim,
    the_winner_publishes,
    bytes_are_as_told,
    each_end_is_told_once,
    the_feed_goes_on,
    the_feed_misses_nothing,
)
"""Each has one promise, in its docstring."""
