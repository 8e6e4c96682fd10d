"""A backup on disk: a folder, or the same as one .tar, with a manifest that names every file."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator

MANIFEST = "manifest.json"
FORMAT = 1
_CHUNK_BYTES = 1 << 20


class BackupFault(Exception):  # noqa: N818 - how a backup or a restore ends, in words for people
    """What was asked cannot be done; nothing was put into place."""


class Entry(BaseModel):
    """One file of a backup."""

    model_config = ConfigDict(frozen=True)

    name: str  # "artifacts/<shard>/<prefix>/<file>"
    size_bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Absent(BaseModel):
    """A file that a row speaks of and that is not in the backup, or not as the row says."""

    model_config = ConfigDict(frozen=True)

    owner: str  # the job's or the upload's id
    key: str


class Manifest(BaseModel):
    """What is in a backup. `missing` was deleted meanwhile or lost before; `damaged` is in it, altered."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    version: str  # of the Tempa that made it
    schema_version: int
    made_at: str
    counts: dict[str, int]
    files: tuple[Entry, ...]
    missing: tuple[Absent, ...] = ()
    damaged: tuple[Absent, ...] = ()


@dataclass(frozen=True, slots=True)
class Digest:
    """What a copy came to."""

    size_bytes: int
    sha256: str


def copy_hashed(source: IO[bytes], target: IO[bytes]) -> Digest:
    """Copy to the end, hashing what goes by."""
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(_CHUNK_BYTES):
        digest.update(chunk)
        size += len(chunk)
        target.write(chunk)
    return Digest(size, digest.hexdigest())


class Writer(Protocol):
    """Where a backup is written to."""

    def add(self, name: str, source: Path) -> Digest: ...  # raises FileNotFoundError, with nothing written
    def finish(self, manifest: Manifest) -> Path: ...  # everything flushed; what is to be renamed into place
    def close(self) -> None: ...  # also when it was not finished


class FolderWriter:
    """A backup as a folder, made at `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def add(self, name: str, source: Path) -> Digest:
        """Copy a file in, flushed. One that lies at its place already is only read."""
        target = self._root / name
        if target == source:
            with source.open("rb") as made, Path(os.devnull).open("wb") as nowhere:
                return copy_hashed(made, nowhere)
        with source.open("rb") as original:
            return write_flushed(target, original)

    def finish(self, manifest: Manifest) -> Path:
        """The folder."""
        write_flushed(self._root / MANIFEST, io.BytesIO(_manifest_bytes(manifest)))
        flush_tree(self._root)
        return self._root

    def close(self) -> None:
        """Nothing is open."""


class TarWriter:
    """A backup as one file, made in the folder `root`."""

    def __init__(self, root: Path) -> None:
        self._path = root / "backup.tar"
        self._file = open(self._path, "xb", opener=_private)  # noqa: SIM115 - closed by `finish`
        self._tar = tarfile.TarFile(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)

    def add(self, name: str, source: Path) -> Digest:
        """Append a file."""
        with source.open("rb") as original:
            return self._append(name, original, os.fstat(original.fileno()).st_size)

    def finish(self, manifest: Manifest) -> Path:
        """The file."""
        content = _manifest_bytes(manifest)
        self._append(MANIFEST, io.BytesIO(content), len(content))
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._path

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _append(self, name: str, content: IO[bytes], size_bytes: int) -> Digest:
        member = tarfile.TarInfo(name)
        member.size, member.mode = size_bytes, 0o600
        hashing = _Hashing(content)
        self._tar.addfile(member, hashing)
        return Digest(size_bytes, hashing.digest.hexdigest())


class _Hashing:
    """A file that hashes what is read of it."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        chunk = self._content.read(size)
        self.digest.update(chunk)
        return chunk


class Reader(Protocol):
    """A backup to be read."""

    def open(self, name: str) -> IO[bytes]: ...  # raises KeyError when it has no such file


@dataclass(frozen=True, slots=True)
class _FolderReader:
    root: Path

    def open(self, name: str) -> IO[bytes]:
        path = self.root / name
        if not path.is_file() or path.is_symlink():
            raise KeyError(name)
        return path.open("rb")


@dataclass(frozen=True, slots=True)
class _TarReader:
    tar: tarfile.TarFile

    def open(self, name: str) -> IO[bytes]:
        content = self.tar.extractfile(self.tar.getmember(name))
        if content is None:
            raise KeyError(name)
        return content


@contextmanager
def open_backup(path: Path) -> Iterator[Reader]:
    """The folder or the .tar at `path`. Raises BackupFault."""
    if path.is_dir():
        yield _FolderReader(path)
        return
    if not path.exists():
        raise BackupFault(f"There is no backup at {path}.")
    try:
        with tarfile.open(path, "r:") as tar:
            yield _TarReader(tar)
    except tarfile.TarError as error:
        raise BackupFault(f"{path} is no backup, or a damaged one: {error}.") from error


def read_manifest(reader: Reader, path: Path) -> Manifest:
    """What the backup says of itself. Raises BackupFault."""
    try:
        with reader.open(MANIFEST) as file:
            document: Any = json.loads(file.read())
    except KeyError:
        raise BackupFault(f"{path} is no backup, or not a whole one: it has no {MANIFEST}.") from None
    except ValueError as error:
        raise BackupFault(f"{path} is damaged: its {MANIFEST} cannot be read.") from error
    if isinstance(document, dict) and isinstance(document.get("format"), int) and document["format"] > FORMAT:
        raise BackupFault(f"{path} was made by a newer Tempa. Upgrade this one first.")
    try:
        manifest = Manifest.model_validate(document)
    except ValidationError as error:
        raise BackupFault(f"{path} is damaged: its {MANIFEST} is not what we wrote.") from error
    if any(not _is_below(entry.name) for entry in manifest.files):
        raise BackupFault(f"{path} is damaged: its {MANIFEST} names a place outside.")
    return manifest


def write_flushed(target: Path, content: IO[bytes]) -> Digest:
    """A new file for its owner only, with the folders above it, its bytes on the disk."""
    make_private(target.parent)
    with open(target, "xb", opener=_private) as file:
        digest = copy_hashed(content, file)
        file.flush()
        os.fsync(file.fileno())
    return digest


def make_private(folder: Path) -> None:
    """A folder for its owner only, with those above it: `mkdir` would give its mode to the last one alone."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700)


def flush_tree(root: Path) -> None:
    """Flush a folder and those below it: the names of their files."""
    for folder, _, _ in os.walk(root):
        flush_folder(Path(folder))


def flush_folder(folder: Path) -> None:
    """Flush one folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _manifest_bytes(manifest: Manifest) -> bytes:
    return (json.dumps(manifest.model_dump(mode="json"), indent=1) + "\n").encode()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _is_below(name: str) -> bool:
    path = PurePosixPath(name)
    return (
        not path.is_absolute()
        and ".." not in path.parts
        and str(path) == name
        and name not in {".", MANIFEST}
    )
