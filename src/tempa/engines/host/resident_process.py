"""A resident process: it has an engine's model loaded, and does one attempt after the other itself.

Started by exec, by `resident_start`, under the engine's own interpreter. The host stops an attempt by
killing the whole process, which is started anew for the next one: nothing else stops a GPU kernel in the
middle. It dies with its host, and ends when its control line does.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tempa.engines.host import child, confine
from tempa.engines.host.control_line import ControlLine
from tempa.engines.host.protocol import Ready, Serve, Served
from tempa.engines.host.zygote import address_space_bytes, unable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.jobs.ports import Runner

_KIB = 1024
_RESET_PEAK = "5"  # proc(5), clear_refs: the peak of the resident set is then what is resident now


class Resident:
    """Serves attempts, one at a time."""

    def __init__(self, line: ControlLine, runner: Runner) -> None:
        self._line = line
        self._runner = runner
        self._own_output = os.dup(1)

    def serve(self) -> None:
        """Return when the host has hung up."""
        while True:
            message, descriptors = self._line.receive()
            if message is None:
                return
            assert isinstance(message, Serve)
            (channel,) = descriptors
            self._attempt(message.attempt, channel)

    def _attempt(self, number: int, descriptor: int) -> None:
        _reset_peak()
        spent_seconds = _cpu_seconds()
        with socket.socket(fileno=descriptor) as channel:
            task = child.receive(channel)
            if task is None:  # the host gave up
                return
            try:
                child.serve(self._runner, task, channel, confine.limit_files)
            finally:
                self._tidy()
        self._line.send(Served(number, _cpu_seconds() - spent_seconds, _peak_rss_bytes()))

    def _tidy(self) -> None:
        """Let go of the attempt: its folder, its output, its garbage."""
        os.chdir("/")
        confine.flush_output()
        confine.print_to(self._own_output)
        gc.collect()


def _reset_peak() -> None:
    with contextlib.suppress(OSError):  # without it the peak is the process's, not the attempt's
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK, encoding="ascii")


def _peak_rss_bytes() -> int:
    """Not getrusage's: that one begins with what the server had when it started this process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) * _KIB


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def load(module: str, options: Mapping[str, Any]) -> Runner:
    """Import an engine's module, tell it the operator's options if it takes any, and have it load its model.

    Raises:
        BaseException: whatever the module raised.
    """
    runner = importlib.import_module(module)
    configure = getattr(runner, "configure", None)
    if configure is not None:
        configure(options)
    runner.load()
    return cast("Runner", runner)


def main() -> None:
    """Load the engine, say so, and serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--line", type=int, required=True)
    parser.add_argument("--host", type=int, required=True)
    parser.add_argument("--module", required=True)
    parser.add_argument("--options", type=json.loads, required=True)
    arguments = parser.parse_args()
    # Before anything that may take long: a host that dies meanwhile takes this process along.
    confine.die_with_parent(arguments.host)
    # A service manager that stops the server signals its whole group; when attempts end is for the host.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    confine.go_last()
    line = ControlLine(socket.socket(fileno=arguments.line))
    runner = _load_or_tell(arguments.module, arguments.options, line)
    if runner is not None:
        line.send(Ready(address_space_bytes()))
        Resident(line, runner).serve()
    sys.stdout.flush()
    os._exit(0)  # a model's threads and destructors do not decide how long this takes


def _load_or_tell(module: str, options: Mapping[str, Any], line: ControlLine) -> Runner | None:
    try:
        return load(module, options)
    except BaseException as error:  # noqa: BLE001 - SystemExit too: the host waits for a word
        traceback.print_exc()
        line.send(unable(error))
        return None
