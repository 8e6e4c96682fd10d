"""The other end of process.py: prepares, says so, works at the word "go", and says what it found.

Standard library only: what is measured beside Tempa runs in environments of its own.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    Go = Callable[[], Awaitable[None]]
    Work = Callable[[Mapping[str, Any], Go], Coroutine[Any, Any, Mapping[str, Any]]]


def obey(work: Work, run: Callable[[Coroutine[Any, Any, None]], object] = asyncio.run) -> None:
    """Do `work` with the options on the command line. Whatever comes before its `go()` is not measured."""
    run(_obey(work, json.loads(sys.argv[1])))


async def _obey(work: Work, options: Mapping[str, Any]) -> None:
    began = 0.0

    async def go() -> None:
        nonlocal began
        say({"ready": True})
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        began = time.process_time()

    figures = dict(await work(options, go))
    say({"cpu_seconds": time.process_time() - began, **figures})


def say(words: Mapping[str, Any]) -> None:
    """One line to whoever started this process."""
    print(json.dumps(words), flush=True)
