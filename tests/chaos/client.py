"""Clients that ask again with the same key until they are answered, and write down all they see."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tempa.testing.history import FeedLine, Hook, Line, Look, Removed, Ticket
from tempa.testing.invariants import TERMINAL
from tempa.testing.pictures import toadstool

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.testing.history import History
    from tempa.testing.receiver import Receiver
    from tests.chaos.house import House

HOOK = "/hook"
LIVE = "live"


class Gate:
    """A path on which `do: wait` kernels wait, also those to come, until it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._holder: int | None = os.open(path, os.O_RDWR)  # there is a writer: kernels wait to read

    def open(self) -> None:
        """Let all go on. Idempotent."""
        if self._holder is not None:
            opened = self.path.with_suffix(".open")
            opened.touch()
            opened.replace(self.path)  # for those to come
            os.close(self._holder)  # for those that wait
            self._holder = None


@dataclass
class Client:
    """Asks one server, which dies now and then: each call may raise httpx2.HTTPError, and be made again."""

    house: House
    receiver: Receiver
    history: History
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    tickets: dict[str, str] = field(default_factory=dict)
    _position: int = 0

    def ask(self, key: str, body: dict[str, Any] | None = None) -> str:
        """A job for this key: new, or the one it has. `body` may be left out when asked again."""
        body = self.asked.setdefault(key, body or {})
        route = "/v1/splats/generate" if "image_base64" in body else "/v1/models/generate"
        with self.house.http() as http:
            answer = http.post(route, json=body, headers={"Idempotency-Key": key})
        assert answer.status_code in {200, 202}, answer.text
        job_id = str(answer.json()["job_id"])
        self.tickets[key] = job_id
        replayed, hooked = answer.status_code == 200, "webhook_url" in body
        self.history.append(Ticket(key=key, job_id=job_id, at=time.time(), replayed=replayed, hooked=hooked))
        return job_id

    def body(self, parameters: dict[str, Any], hook: str | None = HOOK, **options: Any) -> dict[str, Any]:
        """What a job of the trial engine is asked for with."""
        told = {} if hook is None else {"webhook_url": self.receiver.url(hook)}
        return {"engine": "trial", "parameters": parameters, **told, **options}

    def picture_body(self, number: int) -> dict[str, Any]:
        """What splats of a small picture are asked for with."""
        picture = base64.b64encode(toadstool(64)).decode()
        parameters = {"num_gaussians": 1024, "seed": number}
        return {"image_base64": picture, "parameters": parameters, "webhook_url": self.receiver.url(HOOK)}

    def look(self, job_id: str, wait_seconds: int = 0, etag: str = "") -> Look | None:
        """Look at a job; with `etag` wait until it differs. None: it does not."""
        with self.house.http() as http:
            answer = http.get(
                f"/v1/jobs/{job_id}", params={"wait": wait_seconds}, headers={"If-None-Match": etag}
            )
        if answer.status_code == 304:
            return None
        seen = Look(job_id=job_id, code=answer.status_code, at=time.time())
        if answer.status_code == 200:
            seen = _told(seen, answer.json())
        self.history.append(seen)
        return seen

    def wait_past(self, job_id: str, *statuses: str) -> Look:
        """Look until it is in none of these."""
        etag = ""
        while (seen := self.look(job_id, 5, etag)) is None or seen.status in statuses:
            etag = f'W/"{seen.sequence}"' if seen else etag
        return seen

    def wait_for_end(self, job_id: str) -> Look:
        """Look until it is over."""
        return self.wait_past(job_id, "queued", "processing")

    def cancel(self, job_id: str) -> str:
        """The outcome."""
        with self.house.http() as http:
            answer = http.post(f"/v1/jobs/{job_id}/cancel")
        assert answer.status_code == 200, answer.text
        return str(answer.json()["outcome"])

    def remove(self, job_id: str) -> None:
        """Have a terminal job's files deleted."""
        self.history.append(Removed(job_id=job_id))
        with self.house.http() as http:
            answer = http.delete(f"/v1/jobs/{job_id}")
        assert answer.status_code == 204, answer.text

    def upload(self, content: bytes) -> None:
        """Store an input."""
        with self.house.http() as http:
            answer = http.post("/v1/files", content=content)
        assert answer.status_code == 201, answer.text

    def redrive(self) -> None:
        """Every dead letter goes out again."""
        with self.house.http() as http:
            answer = http.post("/v1/webhooks/dead-letters/redrive", json={"since": "2020-01-01T00:00:00Z"})
        assert answer.status_code == 200, answer.text

    def read_feed(self) -> None:
        """Go on from the last position, to the end."""
        with self.house.http() as http:
            while items := http.get("/v1/events", params={"after": self._position, "limit": 200}).json()[
                "items"
            ]:
                for item in items:
                    if item["job_id"] is not None:  # else it tells of an endpoint, or of a delivery
                        self.history.append(_feed_line(item))
                self._position = items[-1]["position"]

    def read_log(self, job_id: str) -> None:
        """A job's own log, from its stream."""
        with self.house.http() as http:
            text = http.get(f"/v1/jobs/{job_id}/events").text
        for line in text.splitlines():
            if line.startswith("data: ") and "sequence" in (event := json.loads(line.removeprefix("data: "))):
                attempt = event.get("attempt")
                self.history.append(
                    Line(job_id=job_id, sequence=event["sequence"], type=event["type"], attempt=attempt)
                )

    def deliveries_under_way(self) -> bool:
        """Whether any webhook may still be sent."""
        with self.house.http() as http:
            for status in ("pending", "leased", "parked"):
                answer = http.get("/v1/webhooks/deliveries", params={"status": status, "limit": 1})
                if answer.json()["items"]:
                    return True
        return False

    def read_hooks(self) -> None:
        """What has arrived."""
        for request in self.receiver.requests:
            document = json.loads(request.body)
            word = document["type"].rpartition(".")[2]
            if word in TERMINAL:
                webhook_id = request.headers["webhook-id"]
                self.history.append(Hook(webhook_id=webhook_id, job_id=document["data"]["job_id"], type=word))

    def ask_again(self) -> None:
        """With every key that was ever sent: what was not answered is, and nobody gets another job."""
        for key in list(self.asked):
            self.ask(key)


def _told(seen: Look, job: dict[str, Any]) -> Look:
    return Look(
        job_id=seen.job_id,
        code=seen.code,
        at=seen.at,
        status=job["status"],
        sequence=job["sequence"],
        attempt=job["attempt"],
        retained_until=datetime.fromisoformat(job["retained_until"]).timestamp(),
    )


def _feed_line(item: dict[str, Any]) -> FeedLine:
    return FeedLine(reader=LIVE, position=item["position"], job_id=item["job_id"], sequence=item["sequence"])


def sha256(path: Path) -> str:
    """Of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
