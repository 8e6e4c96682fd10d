"""What a measured sender does, each scene in a process of its own: see told.py."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from bench.calls import every
from bench.probes import resident_mib
from bench.told import obey
from bench.webhooks.bare import BareLoop
from bench.webhooks.cores import SENDER, pin
from bench.webhooks.post import announce, at_work, complete, delivering, opening, running_jobs
from tempa.core.signing import webhook_headers
from tempa.webhooks.ports import Answer
from tempa.wiring.roles import deliverer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.told import Go
    from bench.webhooks.post import Tally
    from tempa.webhooks.ports import Outbound, Sender
    from tempa.wiring.parts import Parts

    Options = Mapping[str, Any]
    Figures = Mapping[str, Any]

_LOOK_SECONDS = 0.25
_SAMPLE_SECONDS = 0.05


async def drain(options: Options, go: Go) -> Figures:
    """Deliver all that waits, by the deliverer alone, over the sender that is asked for."""
    count = options["deliveries"]
    async with opening(Path(options["folder"])) as (parts, tally):
        await announce(parts, options["urls"], count)
        chosen = await _sender(options, parts)
        await go()
        commits, began, cpu_began = parts.store_writes().commits, time.monotonic(), time.process_time()
        await _deliver(replace(parts, sender=chosen), tally, count)
        figures = {
            "cpu_seconds": time.process_time() - cpu_began,
            "seconds": time.monotonic() - began,
            "commits": parts.store_writes().commits - commits,
        }
        unfinished = await parts.webhooks.delivery_counts()
        assert not any(unfinished.values()), f"not all were delivered: {unfinished}"
        if chosen is not parts.sender:
            await chosen.close()
    return figures


async def _deliver(parts: Parts, tally: Tally, count: int) -> None:
    """Until all is delivered and on disk."""
    stop = asyncio.Event()
    role = asyncio.create_task(deliverer(parts).run(stop))
    await tally.until(count)
    stop.set()
    await role


async def _sender(options: Options, parts: Parts) -> Sender:
    if not options["aiohttp"]:
        return parts.sender
    sys.path.append(options["aiohttp"])  # last: nothing of Tempa's own is to come from there
    from bench.webhooks.aiohttp_sender import AiohttpSender  # noqa: PLC0415 - only now it can be found

    return AiohttpSender()


class Recorder:
    """A sender that keeps what it is to send, and says that it was taken."""

    def __init__(self) -> None:
        self.requests: list[Outbound] = []

    async def send(self, request: Outbound) -> Answer:
        """Keep it."""
        self.requests.append(request)
        return Answer(200, None)

    async def close(self) -> None:
        """Nothing is open."""


async def bare(options: Options, go: Go) -> Figures:
    """What the deliverer would send, byte for byte, sent by a loop that knows nothing of a store."""
    recorder, count = Recorder(), options["deliveries"]
    async with opening(Path(options["folder"])) as (parts, tally):
        await announce(parts, options["urls"], count)
        await _deliver(replace(parts, sender=recorder), tally, count)
        secrets = parts.keyring.of_account("account-0")
    bodies = {request.body: json.loads(request.body) for request in recorder.requests}

    def made_anew(request: Outbound) -> Outbound:
        body = json.dumps(bodies[request.body], ensure_ascii=False, separators=(",", ":")).encode()
        plain = tuple(pair for pair in request.headers if pair[0] in {"Content-Type", "User-Agent"})
        headers = (*plain, *webhook_headers(secrets, bodies[request.body]["id"], int(time.time()), body))
        return replace(request, body=body, headers=headers)

    loop = BareLoop()
    await go()
    began = time.process_time()
    answered = loop.send(recorder.requests, made_anew if options["signs"] else lambda request: request)
    return {"cpu_seconds": time.process_time() - began, "answered": answered}


async def paced(options: Options, go: Go) -> Figures:
    """Jobs end at a steady pace and their webhooks go out; when each end was on disk, by job id."""
    urls, count = options["urls"], options["deliveries"]
    committed: dict[str, float] = {}
    async with opening(Path(options["folder"])) as (parts, tally), at_work(*delivering(parts)):
        jobs = await running_jobs(parts, [*urls, *options["bad_urls"]], count)
        await announce(parts, urls, len(urls))  # connections, and what is known of each endpoint
        await tally.until(len(urls))

        async def one(number: int) -> None:
            await complete(parts, jobs[number])
            committed[jobs[number].job.id] = time.monotonic()

        await go()
        began, cpu_began = time.monotonic(), time.process_time()
        await every(1 / options["per_second"], count, one)
        healthy = {one.job.id for one in jobs if one.job.request.webhook_url in set(urls)}
        async with asyncio.timeout(options["patience_seconds"]):
            await tally.until(len(urls) + len(healthy))
        took, cpu_seconds = time.monotonic() - began, time.process_time() - cpu_began
    return {
        "cpu_seconds": cpu_seconds,
        "seconds": took,
        "committed": {job_id: at for job_id, at in committed.items() if job_id in healthy},
    }


async def dead(options: Options, go: Go) -> Figures:
    """So many wait for an endpoint that refuses the connection; how often it is tried within so long."""
    async with opening(Path(options["folder"])) as (parts, tally):
        await announce(parts, options["urls"], options["deliveries"])
        await go()
        async with at_work(*delivering(parts)):
            await asyncio.sleep(options["seconds"])
            return {"attempts": sum(tally.attempts.values())}


async def recovery(options: Options, go: Go) -> Figures:
    """Deliver what waits for an endpoint that is down and comes back, or until patience ends."""
    count = options["deliveries"]
    async with opening(Path(options["folder"])) as (parts, tally):
        await announce(parts, options["urls"], count)
        await go()
        async with at_work(*delivering(parts)):
            deadline = time.monotonic() + options["patience_seconds"]
            while time.monotonic() < deadline and await _waiting(parts):  # noqa: ASYNC110 - in the store
                await asyncio.sleep(_LOOK_SECONDS)
            return {"delivered": tally.attempts["delivered"], "ended": time.monotonic()}


async def _waiting(parts: Parts) -> int:
    counts = await parts.webhooks.delivery_counts()
    return sum(number for status, number in counts.items() if status != "dead")


async def hostile(options: Options, go: Go) -> Figures:
    """How much memory it takes to be badly treated, over what it took when nothing was to do."""
    urls = options["urls"]
    async with opening(Path(options["folder"])) as (parts, tally), at_work(*delivering(parts)):
        warm = options["warm_urls"]
        await announce(parts, warm, len(warm))
        await tally.until(len(warm))
        jobs = await running_jobs(parts, urls, options["deliveries"])
        await asyncio.sleep(_LOOK_SECONDS)
        idle = resident_mib(os.getpid())
        await go()
        await asyncio.gather(*(complete(parts, job) for job in jobs))
        most, deadline = idle, time.monotonic() + options["seconds"]
        while time.monotonic() < deadline:
            most = max(most, resident_mib(os.getpid()))
            await asyncio.sleep(_SAMPLE_SECONDS)
        return {"idle_mib": idle, "most_mib": most, "attempts": sum(tally.attempts.values())}


_SCENES = {
    "drain": drain,
    "bare": bare,
    "paced": paced,
    "dead": dead,
    "recovery": recovery,
    "hostile": hostile,
}


async def _play(options: Options, go: Go) -> Figures:
    return await _SCENES[options["scene"]](options, go)


if __name__ == "__main__":
    pin(SENDER)
    obey(_play, uvloop.run)
