"""Log lines: the short way to a line makes what the long one makes."""

from __future__ import annotations

import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from tempa.wiring import logs
from tempa.wiring.settings import Log

_TIME = re.compile(r'"timestamp": "(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)"')


@pytest.fixture
def formatter() -> logging.Formatter:
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    writer = logs.configure(Log(level="info", format="json"))
    (handler,) = root.handlers
    root.handlers[:], root.level = before
    writer.stop()
    assert handler.formatter is not None
    return handler.formatter


def a_record(
    severity: int = logging.INFO, text: str = "began", *args: Any, **extra: Any
) -> logging.LogRecord:
    return logging.getLogger("tempa.x").makeRecord(
        "tempa.x", severity, "x.py", 1, text, args, None, extra=extra
    )


def both_ways(formatter: logging.Formatter, record: logging.LogRecord) -> tuple[str, str]:
    """Ours and structlog's, both without the time, which is that of the formatting."""
    assert isinstance(formatter, structlog.stdlib.ProcessorFormatter)
    ours, theirs = formatter.format(record), structlog.stdlib.ProcessorFormatter.format(formatter, record)
    assert len(_TIME.findall(ours)) == len(_TIME.findall(theirs)) == 1
    return _TIME.sub("", ours), _TIME.sub("", theirs)


@pytest.mark.parametrize(
    "record",
    [
        a_record(),
        a_record(logging.WARNING, "%s of %d", 'ö\u2028\x00"\\', 3),
        a_record(logging.CRITICAL, "with all", delivery_id="dlv_1", http_status=None, attempt=2, x=0.1),
        a_record(25, "of a level between", nested={"a": [1, 2.5, True]}, at=datetime(2024, 1, 1, tzinfo=UTC)),
        a_record(logging.ERROR, "not JSON", key={1, 2}, event="told twice", level="mine", logger="mine"),
        a_record(logging.INFO, "no number", value=float("nan"), message_id="evt_\ud800"),
    ],
    ids=lambda record: record.msg,
)
def test_a_line_is_what_structlog_makes_of_it(
    formatter: logging.Formatter, record: logging.LogRecord
) -> None:
    ours, theirs = both_ways(formatter, record)

    assert ours == theirs


def test_what_a_context_binds_is_in_its_lines(formatter: logging.Formatter) -> None:
    with structlog.contextvars.bound_contextvars(request_id="req_1", event="not this"):
        ours, theirs = both_ways(formatter, a_record())

    assert ours == theirs
    assert '"request_id": "req_1"' in ours


def test_a_failure_goes_the_long_way(formatter: logging.Formatter) -> None:
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        record = a_record(logging.ERROR, "broke")
        record.exc_info = sys.exc_info()

    ours, theirs = both_ways(formatter, record)

    assert ours == theirs
    assert "ZeroDivisionError" in ours
