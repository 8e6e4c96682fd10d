"""The host's view of one attempt: from the task it gives a child to what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from tempa.core.crash import crash_point
from tempa.core.ids import new_id
from tempa.engines.host.outcome import Ending, Verdict, judge, made_files
from tempa.engines.host.output import Output
from tempa.engines.host.protocol import Done, Exited, Fault, ProtocolError, Raised, Stage, Task, frame
from tempa.engines.host.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.engines.host.bounds import Bounds
    from tempa.engines.host.protocol import Message
    from tempa.engines.host.seat import End, Seat
    from tempa.jobs.ports import Broke, Made, Order

_log = logging.getLogger(__name__)

# Larger ones are waited for: their memory takes the kernel some 80 ms a GiB to free, and who comes
# next was promised it. A loaded OCCT is 270 MB of these, all but some 10 MB shared with its zygote.
LEAVER_BYTES_MAX = 512 * 1024**2


class Attempt:
    """Gives a child its task, hears it and watches it.

    `known` gets its result as soon as the outcome stands: at the child's report, if all that is left
    of the attempt is a small process on its way out, else when nothing of it runs any more. The task
    is sent when the host knows the child, not before: so an attempt that was lost earlier has done
    nothing and may be started again.
    """

    def __init__(
        self, order: Order, bounds: Bounds, progress: Callable[[str, float | None], None], seat: Seat
    ) -> None:
        self._order = order
        self._bounds = bounds
        self._progress = progress
        self._seat = seat
        self._task = _task_frame(order, bounds)
        self._loop = asyncio.get_running_loop()
        self.ended = seat.ended
        self.known: asyncio.Future[Done | End] = self._loop.create_future()
        self._watch: Watch | None = None
        self._began_at = 0.0
        self._ended_at: float | None = None
        self._last_word: Done | Raised | Fault | None = None
        self._verdict: Verdict | None = None
        self._output = Output(order.folder.parent)
        seat.channel.listen(self._hear, lambda: self.kill(Verdict.GARBAGE))
        seat.ended.add_done_callback(self._end)
        seat.when_begun(self._begin)

    def _begin(self) -> None:
        """The child lives: give it its task, and watch it. Its time runs from now."""
        self._began_at = self._loop.time()
        self._seat.channel.send(self._task, [self._output.fileno()])
        crash_point("child.started")
        with contextlib.suppress(FileNotFoundError):  # dead already; the zygote will say how
            self._watch = Watch(self._seat.pid, self._bounds, self.kill, self._output.trim)

    def _hear(self, message: Message) -> None:
        match message:
            case Stage(stage, fraction):
                crash_point("stage.heard")
                self._tell_progress(stage, fraction)
            case Done() | Raised() | Fault() if self._last_word is None:
                self._hear_last(message)
            case _:
                raise ProtocolError("not a child's word")

    def _hear_last(self, word: Done | Raised | Fault) -> None:
        if isinstance(word, Done):
            crash_point("done.heard")
            made_files(word.files)
            if word.alone and word.peak_rss_bytes <= LEAVER_BYTES_MAX and not self.known.done():
                self.known.set_result(word)
        self._last_word = word

    def _tell_progress(self, stage: str, fraction: float | None) -> None:
        try:
            self._progress(stage, fraction)
        except Exception:  # noqa: BLE001 - the caller's fault must not stop the loop's reader
            _log.exception("a progress callback failed", extra={"engine": self._order.engine})

    def kill(self, verdict: Verdict) -> None:
        """Have the child's whole group killed; the first verdict stands."""
        if self._verdict is None and not self.ended.done():
            self._verdict = verdict
            self._seat.kill()

    def _end(self, ended: asyncio.Future[End]) -> None:
        self._ended_at = self._loop.time()
        if self._watch is not None:
            self._watch.stop()
        if not self.known.done():
            self.known.set_result(ended.result())

    def outcome(self) -> Made | Broke:
        """What came of it. To be asked when `known` says `Done`, `Exited`, or `Lost` after the start."""
        how = self.ended.result() if self.ended.done() else self.known.result()
        exited = how if isinstance(how, Exited) else None
        return judge(
            Ending(
                bounds=self._bounds,
                last_word=self._last_word,
                verdict=self._verdict,
                exit_code=exited.exit_code if exited else None,
                cpu_seconds=exited.cpu_seconds if exited else 0.0,
                wall_seconds=(self._ended_at or self._loop.time()) - self._began_at,
                peak_rss_bytes=(exited.peak_rss_bytes if exited else 0) or self._seen_rss_bytes(),
                peak_size_bytes=self._watch.peak_size_bytes if self._watch else 0,
                output_tail=self._output.tail(),
                reference=self._log_fault(),
            )
        )

    def _seen_rss_bytes(self) -> int:
        watched = self._watch.peak_rss_bytes if self._watch else 0
        told = self._last_word.peak_rss_bytes if isinstance(self._last_word, Done) else 0
        return max(watched, told)

    def _log_fault(self) -> str:
        if not isinstance(self._last_word, Fault):
            return ""
        reference = new_id("log")
        _log.error(
            "an engine raised what it should not",
            extra={
                "engine": self._order.engine,
                "reference": reference,
                "trace": self._last_word.trace,
                "output": self._output.tail(),
            },
        )
        return reference

    async def see_off(self, leave_seconds: float) -> None:
        """Wait until a child that has said everything is gone; have it killed if it does not go."""
        patience = self._loop.call_later(leave_seconds, self.kill, Verdict.TIMEOUT)
        try:
            how = await self.ended
        finally:
            patience.cancel()
        exit_code = how.exit_code if isinstance(how, Exited) else None
        if exit_code != 0 and self._verdict is not Verdict.CLOSED:
            extra = {"engine": self._order.engine, "exit_code": exit_code}
            _log.warning("a child did not end well after its report, which stands", extra=extra)

    def close(self) -> None:
        """Give everything back. To be called when it has ended, or was never asked for."""
        if self._watch is not None:
            self._watch.stop()
        self._seat.close()
        self._output.close()


def _task_frame(order: Order, bounds: Bounds) -> bytes:
    return frame(
        Task(
            work=dict(order.work),
            folder=str(order.folder),
            address_space_bytes=bounds.address_space_bytes,
            cpu_seconds=bounds.cpu_seconds,
            file_bytes=bounds.file_bytes,
        )
    )
