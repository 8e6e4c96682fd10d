"""Log lines: one JSON object an event, or text on a terminal."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import queue
import sys
import time
from logging.handlers import QueueHandler, QueueListener
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from tempa.wiring.settings import Log


# Never the locals of a frame: they hold keys, and the headers of the request that failed.
_TRACEBACKS = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
)


_LINES_MAX = 10_000  # some MB; then lines are dropped, and their number told
_LAST_LINES_SECONDS = 1.0


_STAMP = structlog.processors.TimeStamper(fmt="iso", utc=True)
_NO_EXTRAS = frozenset(logging.makeLogRecord({}).__dict__)


class _JsonLines(structlog.stdlib.ProcessorFormatter):
    """structlog's lines; the plain ones, of which there is one a delivery, in half of its time."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; byte for byte what the chain of processors makes of it."""
        if record.exc_info or record.stack_info or not isinstance(record.msg, str):
            return super().format(record)
        line: structlog.typing.EventDict = {"event": record.getMessage()}
        structlog.contextvars.merge_contextvars(None, "", line)
        line["level"] = record.levelname.lower()
        line["logger"] = record.name
        line.update((name, value) for name, value in record.__dict__.items() if name not in _NO_EXTRAS)
        _STAMP(None, "", line)
        try:
            return json.dumps(line)
        except TypeError:  # what JSON does not know is structlog's to spell
            return super().format(record)


class _Queued(QueueHandler):
    """Formats where the line was logged, and never waits for whoever reads it.

    A pipe that nobody reads is full after 64 KiB: written to from the event loop, it stopped the
    whole server after 302 requests.
    """

    def __init__(self) -> None:
        super().__init__(queue.Queue(_LINES_MAX))
        self.dropped = 0

    def prepare(self, record: logging.LogRecord) -> str:
        """The line alone: a copy of the record would be to no end."""
        return self.format(record)

    def enqueue(self, line: str) -> None:  # type: ignore[override]  # it gets what `prepare` made
        """Drop the line rather than wait."""
        try:
            self.queue.put_nowait(line)
        except queue.Full:
            self.dropped += 1


class _Writer(QueueListener):
    """Writes the lines in a thread of its own, and how many are missing.

    By the bare descriptor: a stream, or a handler, would be locked by a write that hangs, and the
    interpreter waits for those locks when it ends.
    """

    def __init__(self, queued: _Queued, descriptor: int) -> None:
        super().__init__(queued.queue)
        self._queued = queued
        self._descriptor = descriptor

    def handle(self, line: str) -> None:  # type: ignore[override]  # what `enqueue` put there
        """Write one line."""
        if dropped := self._queued.dropped:
            self._queued.dropped = 0
            self._write(json.dumps({"event": "log lines dropped", "level": "warning", "lines": dropped}))
        self._write(line)

    def _write(self, line: str) -> None:
        rest = f"{line}\n".encode(errors="backslashreplace")
        with contextlib.suppress(OSError):  # nobody is there to read it
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def drain(self) -> None:
        """Give the last lines a moment to be written; a pipe that nobody reads gets no longer."""
        deadline = time.monotonic() + _LAST_LINES_SECONDS
        lines = self._queued.queue
        assert isinstance(lines, queue.Queue)
        with lines.all_tasks_done:
            while lines.unfinished_tasks and (left := deadline - time.monotonic()) > 0:
                lines.all_tasks_done.wait(left)


def configure(log: Log) -> _Writer:
    """Send every logger of the process to standard error in one form. Returns what writes the lines."""
    text = log.format == "text" or (log.format == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        _STAMP,
    ]
    last: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if text
        else [_TRACEBACKS, structlog.processors.JSONRenderer()]
    )
    handler = _Queued()
    formatter = structlog.stdlib.ProcessorFormatter if text else _JsonLines
    handler.setFormatter(
        formatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logging.basicConfig(handlers=[handler], level=log.level.upper(), force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # malformed forms are their senders' matter
    writer = _Writer(handler, sys.stderr.fileno())
    writer.start()
    atexit.register(writer.drain)
    return writer
