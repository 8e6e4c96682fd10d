"""An outage of a receiver, played on a virtual clock against the very policy that deliveries follow.

What follows from an attempt is reckoned by the server's own functions: `follow`, `full_jitter`, the breaker,
the pace. What its database decides is imitated: which delivery is taken and when, how many may be under way
(one, while they are parked), what is given up and what is healed. So is the network: one endpoint, and a
receiver that refuses connections until the outage ends and then takes so many a second; what comes beyond
that, with a tenth of a second's worth to spare, it answers with 503. Times are whole milliseconds from the
beginning of the outage.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.core.clock import from_ms
from tempa.core.retry import RetryPolicy, full_jitter
from tempa.webhooks import breaker
from tempa.webhooks import pace as paces
from tempa.webhooks.breaker import Change, Health, Result
from tempa.webhooks.deliver import follow
from tempa.webhooks.model import AttemptOutcome, DeliveryStatus
from tempa.webhooks.ports import Answer

if TYPE_CHECKING:
    from tempa.core.retry import Dice

RECIPE = RetryPolicy(max_retries=4)  # "five tries in memory": nothing parked, paced, limited or healed
_SPARE_SECONDS = 0.1
_PROBES_IN_FLIGHT = 1  # attempts to an endpoint whose breaker is open
_PARKED_SECONDS_MAX = 72 * 3600.0  # then a parked delivery is dead: `endpoint_down`

_TAKEN = Answer(200, None)
_FULL = Answer(503, None)
_DOWN = Answer(None, "connect_refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One outage. Its events arise evenly over `over_seconds`, the first as it begins; 0: all at once."""

    outage_seconds: float
    events: int
    over_seconds: float
    capacity_per_second: float = 200.0
    latency_seconds: float = 0.05
    in_flight_max: int = 4
    seed: int = 1

    def __post_init__(self) -> None:
        assert self.events > 0, "without events nothing happens"
        assert 0 <= self.over_seconds <= self.outage_seconds, "what arises later is not part of the outage"
        assert self.capacity_per_second >= 1, "no pace is slower"
        assert self.latency_seconds >= 0.001, "time goes by the millisecond"
        assert self.in_flight_max >= 1, "one at a time at least"

    def arrival_ms(self, number: int) -> int:
        """When an event arises."""
        return round(1000 * self.over_seconds * number / max(1, self.events - 1))

    @property
    def latency_ms(self) -> int:
        """From request to answer."""
        return round(1000 * self.latency_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """How an outage went. Times are seconds; None for what never came."""

    events: int
    delivered: int
    dead_letters: int  # made at any time
    healed: int  # dead letters delivered by the round that follows a recovery of itself
    left_dead: int  # a person has to see to them
    lost: int  # neither delivered nor in the dead letters
    requests_into_outage: int
    opened_after_seconds: float | None
    noticed_after_seconds: float | None  # from the outage's end to the first 2xx
    peak_share: float  # requests in the busiest second after the outage, of what the receiver can take
    rejected_share: float  # of the requests after the outage
    drain_seconds: float | None  # from the first 2xx to the last
    drain_share: float | None  # of what that takes at capacity, or with so many in flight; paced only


def play(scenario: Scenario, policy: RetryPolicy) -> Story:
    """The outage under the policy in force."""
    endpoint = _Endpoint(scenario, policy)
    endpoint.run()
    possible = min(scenario.capacity_per_second, scenario.in_flight_max / scenario.latency_seconds)
    return endpoint.receiver.story(
        possible,
        dead_letters=endpoint.died,
        healed=endpoint.healed,
        left_dead=len(endpoint.dead),
        opened_after_seconds=None if endpoint.opened_at is None else endpoint.opened_at / 1000,
    )


def play_recipe(scenario: Scenario) -> Story:
    """The same outage under the common recipe: every event on its own, five tries, then it is dead."""
    receiver = _Receiver(scenario)
    rng = random.Random(scenario.seed)  # noqa: S311 - the same seed tells the same story
    tries = [(scenario.arrival_ms(number), number, 0) for number in range(scenario.events)]
    dead = 0
    while tries:  # a heap: it begins in order
        now, number, spent = heapq.heappop(tries)
        if receiver.ask(now) is _TAKEN:
            continue
        if spent >= RECIPE.max_retries:
            dead += 1
            continue
        again_at = now + scenario.latency_ms + round(1000 * full_jitter(spent, RECIPE, rng))
        heapq.heappush(tries, (again_at, number, spent + 1))
    return receiver.story(dead_letters=dead, left_dead=dead)


class _Receiver:
    """Down until the outage ends, then a bucket that its capacity fills. It keeps the books."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._up_at = round(1000 * scenario.outage_seconds)
        self._depth = max(1.0, scenario.capacity_per_second * _SPARE_SECONDS)
        self._spare, self._looked_at = self._depth, self._up_at
        self._requests: Counter[int] = Counter()  # by second since the outage; before it: -1
        self._taken_at: list[int] = []

    def ask(self, now: int) -> Answer:
        """The answer to a request that begins now."""
        self._requests[max(now - self._up_at, -1) // 1000] += 1
        if now < self._up_at:
            return _DOWN
        filled = (now - self._looked_at) * self._scenario.capacity_per_second / 1000
        self._spare, self._looked_at = min(self._depth, self._spare + filled), now
        if self._spare < 1:
            return _FULL
        self._spare -= 1
        self._taken_at.append(now)
        return _TAKEN

    def story(
        self,
        possible_per_second: float | None = None,
        *,
        dead_letters: int,
        left_dead: int,
        healed: int = 0,
        opened_after_seconds: float | None = None,
    ) -> Story:
        """What it saw, with what the sender tells of its dead letters."""
        requests = Counter(self._requests)
        into_outage = requests.pop(-1, 0)
        taken = self._taken_at
        drain = (taken[-1] - taken[0]) / 1000 if taken else None
        return Story(
            events=self._scenario.events,
            delivered=len(taken),
            dead_letters=dead_letters,
            healed=healed,
            left_dead=left_dead,
            lost=self._scenario.events - len(taken) - left_dead,
            requests_into_outage=into_outage,
            opened_after_seconds=opened_after_seconds,
            noticed_after_seconds=(taken[0] - self._up_at) / 1000 if taken else None,
            peak_share=max(requests.values(), default=0) / self._scenario.capacity_per_second,
            rejected_share=1 - len(taken) / requests.total() if requests else 0.0,
            drain_seconds=drain,
            drain_share=drain * possible_per_second / len(taken) if drain and possible_per_second else None,
        )


@dataclass(slots=True)
class _Delivery:
    number: int
    since: int
    retries_spent: int = 0
    redriven: bool = False


class _Endpoint:
    """What the store keeps of an endpoint, and what its commands do with it."""

    def __init__(self, scenario: Scenario, policy: RetryPolicy) -> None:
        self.receiver = _Receiver(scenario)
        self.dead: list[_Delivery] = []
        self.died = self.healed = 0
        self.opened_at: int | None = None  # for the first time
        self._scenario, self._policy = scenario, policy
        self._rng: Dice = random.Random(scenario.seed)  # noqa: S311 - the same seed tells the same story
        self._health = Health()
        self._held_until, self._ready_at = 0, 0.0
        arrivals = ((scenario.arrival_ms(number), number) for number in range(scenario.events))
        self._due = [(at, number, _Delivery(number, at)) for at, number in arrivals]  # a heap
        self._under_way: list[tuple[int, int, int, _Delivery, Answer]] = []  # a heap

    def run(self) -> None:
        """One end or start after the other, until all is quiet."""
        now = 0
        while self._due or self._under_way:
            starts_at = max(self._next_start(), now)
            if self._under_way and self._under_way[0][0] <= starts_at:
                now = self._under_way[0][0]
                self._end()
            else:
                now = int(starts_at)
                self._start(now)

    def _next_start(self) -> float:
        most = _PROBES_IN_FLIGHT if self._health.is_open else self._scenario.in_flight_max
        if not self._due or len(self._under_way) >= most:
            return math.inf
        paced = math.ceil(self._ready_at) if self._health.pace else 0
        return max(self._due[0][0], self._held_until, paced)

    def _start(self, now: int) -> None:
        delivery = heapq.heappop(self._due)[2]
        if self._is_parked_too_long(delivery, now):
            self._bury(delivery)
            return
        interval = paces.interval_ms(self._health.pace)
        assert paces.permits(self._ready_at, interval, now) != 0, "the gate was waited for"
        self._ready_at = paces.ready_after(self._ready_at, interval, now, 1)
        answer, ends_at = self.receiver.ask(now), now + self._scenario.latency_ms
        heapq.heappush(self._under_way, (ends_at, delivery.number, now, delivery, answer))

    def _end(self) -> None:
        now, number, started_at, delivery, answer = heapq.heappop(self._under_way)
        then = follow(answer, delivery.retries_spent, self._policy, from_ms(now), self._rng)
        if then.status is DeliveryStatus.PENDING:
            delivery.retries_spent += 1
            self._wait(delivery, now + round(1000 * then.delay_seconds))
        elif then.status is DeliveryStatus.DEAD:
            self._bury(delivery)
        else:
            self.healed += delivery.redriven
        verdict = breaker.verdict_of(_outcome(answer), then)
        result = Result(delivery=number, verdict=verdict, started_at=started_at, at=now)
        self._follow_health(breaker.after(self._health, result, self._policy, self._rng), now)

    def _follow_health(self, after: breaker.After, now: int) -> None:
        self._health = after.health
        self._held_until = max(self._held_until, now + round(1000 * after.hold_seconds))
        if after.change is Change.OPENED and self.opened_at is None:
            self.opened_at = now
        if after.heals:
            self._heal(now)

    def _heal(self, now: int) -> None:
        """Another round for what died of the endpoint's failing: one, ever."""
        for delivery in self.dead:
            if not delivery.redriven:
                self._wait(_Delivery(delivery.number, now, redriven=True), now)
        self.dead = [delivery for delivery in self.dead if delivery.redriven]

    def _wait(self, delivery: _Delivery, due: int) -> None:
        heapq.heappush(self._due, (due, delivery.number, delivery))

    def _bury(self, delivery: _Delivery) -> None:
        self.died += 1
        self.dead.append(delivery)

    def _is_parked_too_long(self, delivery: _Delivery, now: int) -> bool:
        if self._health.opened_at is None:
            return False
        parked_at = max(delivery.since, self._health.opened_at)
        return now - parked_at > 1000 * _PARKED_SECONDS_MAX


def _outcome(answer: Answer) -> AttemptOutcome:
    return AttemptOutcome(
        outcome="",
        http_status=answer.status,
        error=answer.error,
        duration_ms=0,
        timings={},
        body_sha256="",
        response_excerpt=b"",
    )
