"""What it means that a child has ended: the report it left, or the code for how it ended."""

from __future__ import annotations

import logging
import signal
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from tempa.core.errors import CODES, TempaError
from tempa.engines.host.protocol import Done, Fault, ProtocolError, Raised, Unable
from tempa.jobs.ports import Broke, Made, MadeFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.engines.host.bounds import Bounds

_log = logging.getLogger(__name__)

_MEMORY_SIGNALS = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS})


_GARBAGE = "The engine's process said what no sound process says, and was killed."


class Verdict(Enum):
    """Why the host killed a child."""

    TIMEOUT = auto()  # it ran past its time limit
    MEMORY = auto()  # it passed its memory limit
    GARBAGE = auto()  # it said something no sound child says
    CANCELED = auto()  # nobody waits for it any more
    CLOSED = auto()  # the host itself ends


@dataclass(frozen=True, slots=True)
class Ending:
    """Everything the host knows of a child that is gone, or has reported and is on its way out.

    `exit_code` is negative for a signal, and None while the child is not reaped, for ever so when
    the zygote died and nobody could. `reference` names the log line of a `Fault`.
    """

    bounds: Bounds
    last_word: Done | Raised | Fault | None
    verdict: Verdict | None
    exit_code: int | None
    wall_seconds: float
    cpu_seconds: float
    peak_rss_bytes: int
    peak_size_bytes: int
    output_tail: str
    reference: str = ""


def judge(ending: Ending) -> Made | Broke:
    """The outcome of an attempt.

    A child's last word counts even if a limit struck while it was saying it: the work was done.
    """
    compute_time_ms = round(1000 * _wall_seconds(ending))
    if isinstance(ending.last_word, Done):
        return Made(
            files=made_files(ending.last_word.files),
            measurements=ending.last_word.measurements,
            compute_time_ms=compute_time_ms,
            peak_rss_bytes=ending.peak_rss_bytes,
        )
    return Broke(_error(ending), compute_time_ms, ending.peak_rss_bytes)


def _wall_seconds(ending: Ending) -> float:
    told = ending.last_word.wall_seconds if ending.last_word else None
    return ending.wall_seconds if told is None else told


def made_files(entries: list[Any]) -> tuple[MadeFile, ...]:
    """The files of a report, each a plain name in the attempt's folder.

    Raises:
        ProtocolError: an entry is not that.
    """
    try:
        files = tuple(MadeFile(**entry) for entry in entries)
    except TypeError as error:
        raise ProtocolError("not the fields of a file") from error
    if not all(isinstance(word, str) for entry in entries for word in entry.values()):
        raise ProtocolError("not the words of a file")
    for made in files:
        if not made.name or made.name in {".", ".."} or "/" in made.name or "\0" in made.name:
            raise ProtocolError("not a file in the attempt's folder")
    return files


def _error(ending: Ending) -> TempaError:
    match ending.last_word:
        case Raised() as raised:
            return _raised(raised, ending)
        case Fault():
            return TempaError("INTERNAL", detail={"reference": ending.reference})
    if ending.verdict is not None:
        return _verdict(ending.verdict, ending)
    if ending.exit_code is None:
        return TempaError("WORKER_LOST", detail={"reason": "the engine's parent process died"})
    return _death(ending.exit_code, ending)


def _raised(raised: Raised, ending: Ending) -> TempaError:
    if raised.code not in CODES:
        return _crash(ending, _GARBAGE)
    detail = raised.detail | (_memory(ending) if raised.code == "OUT_OF_MEMORY" else {})
    return TempaError(
        raised.code, raised.message, retryable=raised.retryable, hint=raised.hint, detail=detail
    )


def _verdict(verdict: Verdict, ending: Ending) -> TempaError:
    match verdict:
        case Verdict.TIMEOUT:
            return _timeout(ending)
        case Verdict.MEMORY:
            return TempaError("OUT_OF_MEMORY", detail=_with_output(_memory(ending), ending))
        case Verdict.GARBAGE:
            return _crash(ending, _GARBAGE)
        case Verdict.CANCELED | Verdict.CLOSED:
            return TempaError("WORKER_LOST", detail={"reason": "the engine host stopped"})


def _death(exit_code: int, ending: Ending) -> TempaError:
    if exit_code >= 0:
        return _crash(ending, "The engine's process ended without a report.", exit_code=exit_code)
    number = -exit_code
    if number == signal.SIGXCPU or (number == signal.SIGKILL and _cpu_spent(ending)):
        return _timeout(ending)
    if number in _MEMORY_SIGNALS and ending.bounds.exhausted(ending.peak_rss_bytes, ending.peak_size_bytes):
        return TempaError("OUT_OF_MEMORY", detail=_with_output(_memory(ending), ending))
    crash = _crash(ending, signal=_signal_name(number))
    if number == signal.SIGKILL:
        crash.hint = "Something outside Tempa killed the process; the machine may be short of memory."
    return crash


def _cpu_spent(ending: Ending) -> bool:
    return ending.cpu_seconds >= ending.bounds.cpu_seconds


def _timeout(ending: Ending) -> TempaError:
    detail = {"timeout_seconds": ending.bounds.timeout_seconds}
    return TempaError("KERNEL_TIMEOUT", detail=_with_output(detail, ending))


def _crash(ending: Ending, message: str | None = None, **detail: object) -> TempaError:
    return TempaError("KERNEL_CRASHED", message, detail=_with_output(detail, ending))


def _memory(ending: Ending) -> dict[str, Any]:
    return {"memory_bytes": ending.bounds.memory_bytes, "peak_rss_bytes": ending.peak_rss_bytes}


def _with_output(detail: Mapping[str, Any], ending: Ending) -> dict[str, Any]:
    return {**detail, "kernel": ending.output_tail} if ending.output_tail else dict(detail)


def unavailable(module: str, unable: Unable | None, exit_code: int, output_tail: str) -> TempaError:
    """Why an engine's process ended before it was loaded; also written to the log."""
    died = f"its process ended with {exit_code} while it was loaded\n{output_tail}".strip()
    reason = unable.reason if unable else died
    extra = {"engine_module": module, "reason": reason, "output": output_tail}
    _log.error("an engine could not be loaded", extra=extra)
    if exit_code == -signal.SIGKILL and unable is None:  # not ours: the machine's memory, mostly
        return TempaError("WORKER_LOST", detail={"reason": "the engine's parent process was killed"})
    hint = "`tempa doctor` shows what is missing."
    if unable and unable.code in CODES and unable.code != "ENGINE_UNAVAILABLE":
        return TempaError(unable.code, reason, hint=hint)
    message = "The engine could not be loaded."
    return TempaError("ENGINE_UNAVAILABLE", message, hint=hint, detail={"kernel": reason})


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # the real-time signals have no names
        return f"signal {number}"
