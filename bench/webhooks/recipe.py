"""Webhooks by the common recipe: one `requests.post` each. Runs where requests is, and without Tempa."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import requests

from bench.told import obey
from bench.webhooks.cores import SENDER, pin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.told import Go

_HEADERS = {"Content-Type": "application/json"}


async def _post_all(options: Mapping[str, Any], go: Go) -> Mapping[str, Any]:
    urls, payload, count = options["urls"], options["payload"], options["deliveries"]

    def post(number: int) -> bool:
        url = urls[number % len(urls)]
        return requests.post(url, json=payload, headers=_HEADERS, timeout=10.0).status_code == 200

    await go()
    began = time.process_time()
    with ThreadPoolExecutor(options["in_flight"]) as threads:
        answered = await asyncio.to_thread(lambda: sum(threads.map(post, range(count))))
    return {"cpu_seconds": time.process_time() - began, "answered": answered}


if __name__ == "__main__":
    pin(SENDER)
    obey(_post_all)
