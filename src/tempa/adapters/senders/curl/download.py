"""One answer's body on its way into a file: a `Sink`."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from typing import TYPE_CHECKING, BinaryIO

from tempa.core.errors import TempaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_UNTYPED = {"", "application/octet-stream", "binary/octet-stream"}
_PASSING = {408, 425, 429}  # of the 4xx, those that say: later


class Download:
    """`begin`, `take` and `end` are called in the transport's thread, `close` and `keep` in the asking one.

    Whoever gave up closes at once, while the transport may still be at it: hence the lock. Then read what
    came of it: `refused` (the answer is not what was asked for), `broke` (the file), `too_large`, `whole`.
    """

    def __init__(
        self, target: Path, size_bytes_max: int, media_types: Sequence[str], trickle_seconds: int
    ) -> None:
        self.trickle_seconds = trickle_seconds
        self.refused: TempaError | None = None
        self.broke: OSError | None = None
        self.too_large = False
        self.whole = False
        self.size_bytes = 0
        self._target = target
        self._size_bytes_max = size_bytes_max
        self._media_types = media_types
        self._hash = hashlib.sha256()
        self._file: BinaryIO | None = None
        self._lock = threading.Lock()
        self._closed = self._kept = False

    @property
    def sha256(self) -> str:
        """Of the bytes that came, hexadecimal."""
        return self._hash.hexdigest()

    def begin(self, status: int, headers: Mapping[str, str]) -> bool:
        """Whether the body is wanted; then the file is there."""
        self.refused = _refused(status, headers, self._media_types)
        declared = headers.get("content-length", "")
        self.too_large = declared.isdecimal() and int(declared[:20]) > self._size_bytes_max
        return self.refused is None and not self.too_large and self._write(b"")

    def take(self, chunk: bytes) -> bool:
        """The next piece."""
        if self._file is None:  # a body that is not wanted
            return False
        self.too_large = self.size_bytes + len(chunk) > self._size_bytes_max
        return not self.too_large and self._write(chunk)

    def end(self, *, whole: bool) -> None:
        """Whether all of it came."""
        self.whole = whole

    def keep(self) -> None:
        """Leave the file where it is. Raises OSError if the disk cannot hold what was written."""
        with self._lock:
            self._kept = True
            if self._file is not None:
                self._file.flush()

    def close(self) -> None:
        """Take nothing more; remove the file, if it is not kept. Idempotent."""
        with self._lock:
            self._closed = True
            if self._file is None:
                return
            with contextlib.suppress(OSError):
                self._file.close()
            if not self._kept:
                self._target.unlink(missing_ok=True)
            self._file = None

    def _write(self, chunk: bytes) -> bool:
        with self._lock:
            if self._closed:
                return False
            try:
                if self._file is None:
                    self._file = self._target.open("wb")
                self._file.write(chunk)
            except OSError as error:
                self.broke = error
                return False
            self._hash.update(chunk)
            self.size_bytes += len(chunk)
            return True


def refusal(reason: str, message: str, *, retryable: bool = False, **numbers: float) -> TempaError:
    """SOURCE_FETCH_FAILED with its reason and what limits there are."""
    detail = {"reason": reason, **numbers}
    return TempaError("SOURCE_FETCH_FAILED", message, retryable=retryable, detail=detail)


def _refused(status: int, headers: Mapping[str, str], media_types: Sequence[str]) -> TempaError | None:
    """Why the body of this answer is not wanted. Of a redirect it is not either, but that is no fault yet."""
    if status != 200:
        retryable = status >= 500 or status in _PASSING
        return refusal("status", f"The URL answered {status}.", retryable=retryable, http_status=status)
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity"}:  # it was not asked for, and may unpack to anything
        return refusal("compressed", "The URL sends its file compressed although it was not asked to.")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not _is_accepted(kind, media_types):
        shown = kind if kind.isascii() and len(kind) <= 80 else "something else"
        return refusal("media_type", f"The URL's file is declared as {shown}, which is not taken here.")
    return None


def _is_accepted(kind: str, media_types: Sequence[str]) -> bool:
    if kind in _UNTYPED or not media_types:
        return True
    family = f"{kind.partition('/')[0]}/*"
    return kind in media_types or family in media_types
