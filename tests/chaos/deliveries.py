"""Deliveries flow while their server is killed, again and again: what has come is judged at the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sqlite3
import subprocess
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import asyncpg
import httpx2
from standardwebhooks import Webhook

from tempa.core.signing import hex_signature
from tempa.testing.server import wait_for_end
from tests.chaos.house import House
from tests.chaos.story import ENVIRONMENT

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.testing.receiver import Received, Receiver

POSTS = 6  # a round
SLOW_SHARE = 4  # every fourth job tells a receiver that takes a second: something is on its way at each kill
UP_SECONDS_MAX = 0.6  # from when it serves to its death
PATIENCE_SECONDS = 600.0  # a dead deliverer's places at an endpoint are free again after 40 s
JOB, SLOW, ENDPOINT = "/hook", "/drip-body", "/endpoint"
SETTINGS = {
    **ENVIRONMENT,
    "TEMPA_WEBHOOKS__TIMEOUT_SECONDS": "10",  # no attempt fails: what comes twice comes of a kill
}
LEASED = "select id, attempts from delivery where status = 'leased'"
LAPSE = "update delivery set lease_until = 0 where status = 'leased'"


@dataclass
class Siege:
    """A server in `folder` that is killed at random, and the receiver of what it sends.

    `hasten`: leases of the dead run out at once. Else PostgreSQL's deliverers wait for 40 s, as they must.
    """

    folder: Path
    receiver: Receiver
    store_url: str | None = None
    hasten: bool = True
    rng: random.Random = field(default_factory=lambda: random.Random(20261130))
    in_flight: set[tuple[str, int]] = field(default_factory=set)  # attempts on their way at a kill
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    _verified: int = 0

    def __post_init__(self) -> None:
        self.house = House(self.folder, SETTINGS, self.store_url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.house.__exit__()

    def begin(self) -> None:
        """Start it, and register an endpoint that hears of everything."""
        self.house.start()
        account = self.house.processes[0].secret
        with self.house.http() as http:
            asked = {"url": self.receiver.url(ENDPOINT), "events": ["cad_generation.*"]}
            made = http.post("/v1/webhooks/endpoints", json=asked)
        assert made.status_code == 201, made.text
        self.secrets = {JOB: account, SLOW: account, ENDPOINT: made.json()["secret"]}

    def run(self, rounds: int) -> None:
        """New jobs, a random while, kill -9, and up again; so many times."""
        with ThreadPoolExecutor(POSTS) as pool:
            for _ in range(rounds):
                asks = [pool.submit(self._ask, self._new_key()) for _ in range(POSTS)]
                self._let_live(self.rng.uniform(0.0, UP_SECONDS_MAX))
                for victim in self.house.victims:
                    victim.kill()
                for ask in asks:
                    ask.result()
                self.in_flight |= self._orphans()
                self.house.start()
                self._verify_what_came()

    def judge(self) -> None:
        """Wait until all is over; assert that all has come, in order, hardly twice, and signed."""
        jobs = {self._must_ask(key) for key in self.asked}
        with self.house.http() as http:
            ended = {job_id: wait_for_end(http, job_id)["status"] for job_id in jobs}
            self._wait_for_quiet(http)
            dead = http.get("/v1/webhooks/deliveries", params={"status": "dead"}).json()["items"]
        assert set(ended.values()) == {"completed"}
        assert dead == []
        self._verify_what_came()
        self._assert_nothing_is_lost(jobs)
        self._assert_hardly_anything_came_twice()
        assert self.house.stop() == 0

    def _new_key(self) -> str:
        number = len(self.asked)
        hook = JOB if number % SLOW_SHARE else SLOW
        key, told = f"siege-{number}", {"webhook_url": self.receiver.url(hook)}
        self.asked[key] = {"engine": "trial", "parameters": {"do": "finish", "n": number}, **told}
        return key

    def _ask(self, key: str) -> str | None:
        """A job for this key; None when the answer was lost with the server."""
        with contextlib.suppress(httpx2.HTTPError), self.house.http() as http:
            headers = {"Idempotency-Key": key}
            answer = http.post("/v1/models/generate", json=self.asked[key], headers=headers)
            assert answer.status_code in {200, 202}, answer.text
            return str(answer.json()["job_id"])
        return None

    def _must_ask(self, key: str) -> str:
        job_id = self._ask(key)
        assert job_id is not None
        return job_id

    def _let_live(self, seconds: float) -> None:
        process = self.house.victims[0].process
        assert process
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)  # it does not end by itself: a random moment

    def _orphans(self) -> set[tuple[str, int]]:
        """What is on its way by the store, while nobody delivers."""
        if self.store_url is not None:
            return asyncio.run(self._orphans_on_server(self.store_url))
        with contextlib.closing(sqlite3.connect(self.house.data_dir / "tempa.db")) as database:
            return set(database.execute(LEASED))

    async def _orphans_on_server(self, url: str) -> set[tuple[str, int]]:
        connection = await asyncpg.connect(url)
        try:
            found = {tuple(row) for row in await connection.fetch(LEASED)}
            if self.hasten:
                await connection.execute(LAPSE)
            return found
        finally:
            await connection.close()

    def _verify_what_came(self) -> None:
        """By the official library and by plain HMAC, while it is young enough to be believed."""
        requests = self.receiver.requests
        for request in requests[self._verified :]:
            secret = self.secrets[request.path]
            Webhook(secret).verify(request.body, dict(request.headers))
            assert request.headers["x-webhook-signature"] == hex_signature(secret, request.body)
        self._verified = len(requests)

    def _wait_for_quiet(self, http: httpx2.Client) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(
            http.get("/v1/webhooks/deliveries", params={"status": status, "limit": 1}).json()["items"]
            for status in ("pending", "leased", "parked")
        ):
            assert time.monotonic() < deadline, "a delivery is stuck"

    def _assert_nothing_is_lost(self, jobs: set[str]) -> None:
        by_job: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        ends: dict[tuple[str, str], set[str]] = defaultdict(set)
        for request in self.receiver.requests:
            job_id, word = _told(request)
            place = ENDPOINT if request.path == ENDPOINT else JOB
            by_job[job_id][place].append(word)
            if word == "completed":
                ends[job_id, place].add(request.headers["webhook-id"])
        assert set(by_job) == jobs
        for job_id, told in by_job.items():
            assert set(told[JOB]) == {"completed"}, job_id
            assert set(told[ENDPOINT]) == {"started", "completed"}, job_id
            # However often one is told: the end comes after all that was before it.
            assert told[ENDPOINT] == sorted(told[ENDPOINT], reverse=True), job_id
        assert {len(ids) for ids in ends.values()} == {1}

    def _assert_hardly_anything_came_twice(self) -> None:
        came = [(request.path, request.headers["webhook-id"]) for request in self.receiver.requests]
        assert len(came) - len(set(came)) <= len(self.in_flight)


def _told(request: Received) -> tuple[str, str]:
    document = json.loads(request.body)
    return document["data"]["job_id"], document["type"].rpartition(".")[2]
