"""Artifacts on the local disk: what is acknowledged is flushed, files and folders alike."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import logging
import os
import re
import shutil
import stat
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tempa.core.crash import crash_point
from tempa.core.errors import Refusal
from tempa.core.ids import is_id, new_id
from tempa.jobs.model import StoredArtifact
from tempa.jobs.ports import StoredObject

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from tempa.jobs.ports import MadeFile

_logger = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 20
# Another device, a file system without links, one that has no more for this file (ext4: 65,000).
_LINK_REFUSED = frozenset({errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
_SHOWN_BYTES_MAX = 4 << 20
_SCRATCH_SECONDS = 2 * 86_400  # twice the longest attempt that can be allowed
_SHARD_LENGTH = 5  # of an id's time part: one folder for about two hours, so no folder grows for ever


@dataclass(frozen=True, slots=True)
class LocalArtifacts:
    """Files under `root`. A key is `<prefix>/<name>`; a prefix is `<id>.a<epoch>` or an upload's id.

    An attempt writes into a scratch folder on the same file system, which `keep` flushes and
    moves in whole, by one rename: three flushes for one file (the file, its folder, the shard).
    """

    root: Path
    instance: str | None = None  # of several processes that share `root`, each has its own; None: alone
    # Shards that this process has flushed. To see one is not enough: it may be another writer's, who
    # has made it and not flushed the root yet.
    _durable: set[Path] = field(default_factory=set, init=False, repr=False, compare=False)

    def open(self) -> None:
        """Make the folders, and sweep what attempts of a dead server left in scratch.

        Where several share the root, somebody else's scratch may be in use: it is swept once it is old.
        """
        if self.instance is None:
            _sweep(self._scratch)
        else:
            _sweep_old(self._scratch.parent)
        _make_folder(self._scratch)
        _flush_folder(self.root)

    def make_own(self) -> Path:
        """A folder that is ours alone, made if need be: for whoever locks it before `open`."""
        own = self.root / ".tempa"
        _make_folder(own)
        return own

    @property
    def _scratch(self) -> Path:
        """Under a name that is ours alone: the operator may point `root` at a folder with files in it."""
        scratch = self.root / ".tempa" / "scratch"
        return scratch / self.instance if self.instance else scratch

    def scratch(self, name: str) -> Path:
        """A new empty folder for one attempt."""
        folder = self._scratch / name
        _remove(folder)
        _make_folder(folder)
        return folder

    async def keep(self, prefix: str, folder: Path, files: Sequence[MadeFile]) -> tuple[StoredArtifact, ...]:
        """Make the files durable under `prefix`. Raises OSError when the disk will not have them."""
        return await asyncio.to_thread(self._keep, prefix, folder, files)

    def _keep(self, prefix: str, folder: Path, files: Sequence[MadeFile]) -> tuple[StoredArtifact, ...]:
        names = {made.name for made in files}
        for stray in [path for path in folder.iterdir() if path.name not in names]:
            _remove(stray)
        kept = tuple(_flush_file(folder / made.name, prefix, made) for made in files)
        self._move_in(folder, prefix)
        return kept

    async def copy(
        self, prefix: str, artifacts: Sequence[StoredArtifact]
    ) -> tuple[StoredArtifact, ...] | None:
        """The same files under another prefix, as durable as the originals and apart from them.

        Deleting the one leaves the other: what is kept is never written again, so they may share
        their bytes. None: a file is gone, and nothing was left under `prefix`. Raises OSError when
        the disk will not have them.
        """
        return await asyncio.to_thread(self._copy, prefix, artifacts)

    def _copy(self, prefix: str, artifacts: Sequence[StoredArtifact]) -> tuple[StoredArtifact, ...] | None:
        folder = self.scratch(prefix)
        try:
            for one in artifacts:
                _link(self._locate(one.key), folder / one.name)
        except FileNotFoundError:
            return None
        else:
            crash_point("copy.linked")
            self._move_in(folder, prefix)
        finally:
            _sweep(folder)  # moved in, it is no longer there: fine
        return tuple(replace(one, key=f"{prefix}/{one.name}") for one in artifacts)

    def _move_in(self, folder: Path, prefix: str) -> None:
        """Files that are flushed already become the ones under `prefix`, all at once."""
        _flush_folder(folder)
        crash_point("keep.folder_flushed")
        target = self._place(prefix)
        folder.rename(target)
        crash_point("keep.moved")
        _flush_folder(target.parent)
        crash_point("keep.shard_flushed")

    async def discard(self, folder: Path) -> None:
        """Drop a scratch folder. One that was kept is no longer there: fine."""
        await asyncio.to_thread(_sweep, folder)

    async def receive(self, key: str, chunks: AsyncIterator[bytes], size_bytes_max: int) -> StoredObject:
        """Store an upload as it streams in. Raises `Refusal` (`body-too-large`) past the limit."""
        await asyncio.to_thread(_make_folder, self._scratch)
        passing = self._scratch / new_id("up")
        digest, size = hashlib.sha256(), 0
        try:
            with passing.open("xb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > size_bytes_max:
                        raise Refusal("body-too-large", f"An upload has at most {size_bytes_max} bytes.")
                    digest.update(chunk)
                    await asyncio.to_thread(file.write, chunk)
                await asyncio.to_thread(_flush, file)
            crash_point("upload.flushed")
            await asyncio.to_thread(self._admit_upload, passing, key)
        finally:
            passing.unlink(missing_ok=True)
        return StoredObject(key, size, digest.hexdigest())

    def _admit_upload(self, passing: Path, key: str) -> None:
        target = self._place(key)
        passing.rename(target)
        crash_point("upload.moved")
        _flush_folder(target.parent)

    async def path(self, key: str) -> Path | None:
        """The file with these bytes, or None when it is gone."""
        path = self._locate(key)
        return path if path.is_file() else None

    async def lend(self, key: str, target: Path) -> bool:
        """Copy these bytes to `target`, for an attempt to read. False: they are gone.

        A copy and no link: what runs there may write into whatever it finds.
        """
        try:
            await asyncio.to_thread(shutil.copyfile, self._locate(key), target)
        except FileNotFoundError:
            return False
        return True

    async def show(self, key: str, source: Path, shown: int) -> int:
        """Copy a file that an attempt keeps replacing to `key`, in one step and without a flush.

        Not if it is the one that was shown when this gave `shown` (first: 0), nor if it is none, or a large
        one. Returns which one is shown now. Raises OSError when the disk will not have it.
        """
        return await asyncio.to_thread(self._show, key, source, shown)

    def _show(self, key: str, source: Path, shown: int) -> int:
        content, written = _small_file(source)
        if content is None or written == shown:
            return shown
        target = self._locate(key)
        self._place(target.parent.name)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        passing = self._scratch / new_id("up")
        try:
            passing.write_bytes(content)
            passing.rename(target)
        finally:
            passing.unlink(missing_ok=True)
        return written

    async def delete(self, prefix: str) -> None:
        """Remove everything under a prefix. What is gone is fine. Raises OSError when something stays."""
        await asyncio.to_thread(self._delete, prefix)

    def _delete(self, prefix: str) -> None:
        path = self._locate(prefix)
        if _remove(path):
            crash_point("delete.removed")
            _flush_folder(path.parent)  # its row is marked next: bytes must not come back after a power cut

    async def aged(self, age_seconds: float, after: str, limit: int) -> list[str]:
        """Up to `limit` prefixes last written `age_seconds` ago or longer, from the one behind `after`.

        Raises OSError when the folders cannot be read.
        """
        return await asyncio.to_thread(self._aged, age_seconds, after, limit)

    def _aged(self, age_seconds: float, after: str, limit: int) -> list[str]:
        written_by, start = time.time() - age_seconds, (_shard(after), after)
        found: list[str] = []
        for shard in _names(self.root):
            if shard < start[0]:
                continue
            for name in _names(self.root / shard):
                if (shard, name) <= start or not _is_prefix(name) or _shard(name) != shard:
                    continue
                if (written := _written(self.root / shard / name)) is not None and written <= written_by:
                    found.append(name)
                    if len(found) == limit:
                        return found
        return found

    def _place(self, key: str) -> Path:
        """Where a key goes, its shard made durable first."""
        target = self._locate(key)
        shard = target.parent
        if not shard.is_dir():
            self._durable.discard(shard)  # before it is there again: nobody may take it for a flushed one
            _make_folder(shard)
        if shard not in self._durable:
            crash_point("shard.made")
            _flush_folder(self.root)
            self._durable.add(shard)
        return target

    def _locate(self, key: str) -> Path:
        """Keys are ours, never a client's; a slip must still not leave the root."""
        parts = key.split("/")
        assert all(part and not part.startswith(".") for part in parts), "a key names a place below the root"
        shard = _shard(parts[0])
        assert not shard.startswith("."), "a key names a place below the root"
        return self.root.joinpath(shard, *parts)


def _shard(prefix: str) -> str:
    return prefix.partition("_")[2][:_SHARD_LENGTH]


def _is_prefix(name: str) -> bool:
    """Whether we gave this name: the root may hold files of the operator's, too."""
    owner, _, attempt = name.partition(".")
    return is_id(owner) and (not attempt or re.fullmatch(r"a[0-9]+", attempt) is not None)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(place.name for place in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _written(path: Path) -> float | None:
    """Unix seconds; None when it has gone."""
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return None


def _small_file(path: Path) -> tuple[bytes | None, int]:
    """A file's bytes and when it was written; None: it is no file, or not a small one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None, 0
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _SHOWN_BYTES_MAX:
            return None, 0
        return file.read(_SHOWN_BYTES_MAX), found.st_mtime_ns


def _flush_file(path: Path, prefix: str, made: MadeFile) -> StoredArtifact:
    digest, size = hashlib.sha256(), 0
    # An engine's link would lead outside, and to open its pipe would wait for a writer for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{made.name} is not a regular file")
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
        os.fsync(descriptor)
    crash_point("keep.file_flushed")
    return StoredArtifact(
        name=made.name,
        role=made.role,
        file_format=made.file_format,
        media_type=made.media_type,
        size_bytes=size,
        sha256=digest.hexdigest(),
        key=f"{prefix}/{made.name}",
    )


def _link(original: Path, target: Path) -> None:
    """One more name for a flushed file; where there can be none, a flushed copy."""
    try:
        target.hardlink_to(original)
    except OSError as error:
        if error.errno not in _LINK_REFUSED:
            raise
        with original.open("rb") as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy, _CHUNK_BYTES)
            _flush(copy)


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _make_folder(folder: Path) -> None:
    """A folder of ours alone, with those above it: at the start, and anew when the root was emptied.

    Those above, if they had to be made, are flushed; the folder itself is the caller's to flush.
    """
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_folder(folder.parent)
        _flush_folder(folder.parent.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> bool:
    """Delete a file or a folder. Was there any? Raises OSError when something stays."""
    found = False
    while (mode := _mode(path)) is not None:
        found = True
        with contextlib.suppress(FileNotFoundError):  # another deletes it too: look at what is left
            if stat.S_ISDIR(mode):
                shutil.rmtree(path)
            else:
                path.unlink()
    return found


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return None


def _sweep_old(scratch: Path) -> None:
    """What processes left that ended without sweeping. Theirs alone: one at work writes now and then."""
    for name in _names(scratch):
        written = _written(scratch / name)
        if written is not None and written < time.time() - _SCRATCH_SECONDS:
            _sweep(scratch / name)


def _sweep(path: Path) -> None:
    """Delete what does no harm where it lies: the next start tries again."""
    try:
        _remove(path)
    except OSError as error:
        _logger.warning("scratch is left behind: %s", error.strerror, extra={"path": str(path)})
