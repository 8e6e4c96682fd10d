"""A measured process: told what to do on its command line, then "go", then what it found."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
from typing import TYPE_CHECKING, Any, Self

from bench.environments import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PATIENCE_SECONDS = 300


class Broken(Exception):  # noqa: N818 - it says what is the case
    """A process did not do what it was told, and why."""


class Process:
    """Context manager: entered when the process is ready, killed on the way out. told.py is its other end."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        options: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._name = name
        self.ready: dict[str, Any] = {}  # what it said of itself
        self._process = subprocess.Popen(
            [*command, json.dumps(options)],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        try:
            self.ready = self.result()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def go(self) -> Self:
        """Let it begin."""
        return self.say("go")

    def say(self, line: str) -> Self:
        """Tell it something else."""
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self

    def result(self) -> dict[str, Any]:
        """What it says next. Raises Broken if that is nothing."""
        out, err = self._process.stdout, self._process.stderr
        assert out
        assert err
        ready, _, _ = select.select([out], [], [], PATIENCE_SECONDS)
        if not ready:
            raise Broken(f"{self._name}: nothing came within {PATIENCE_SECONDS} s")
        line = out.readline()
        if not line:
            raise Broken(f"{self._name}: {err.read().strip()[-400:]}")
        words: dict[str, Any] = json.loads(line)
        return words


@contextlib.contextmanager
def or_told(what: str) -> Iterator[None]:
    """What breaks costs its own row, and says why."""
    try:
        yield
    except Broken as broken:
        print(f"not run: {what}: {broken}", flush=True)
