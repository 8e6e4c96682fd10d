"""Files to break, and reading what is broken: in bounded memory, with an answer whatever it is."""

from __future__ import annotations

import tempfile
import tracemalloc
from functools import cache
from pathlib import Path

import gaussforge

from tempa.core.errors import TempaError
from tempa.engines.splat.formats.files import read, write
from tempa.engines.splat.gaussians import Gaussians
from tests.unit.splat.formats.clouds import cloud

MEMORY_MAX = 48 << 20  # of reading a file of a few kilobytes


@cache
def good(name: str) -> bytes:
    """A small file that is in order."""
    return of(name, cloud(40, 1))


def of(name: str, gaussians: Gaussians) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write("ply" if name == "spz_4" else name, gaussians, path)
        content = path.read_bytes()
    if name == "spz_4":
        return bytes(gaussforge.GaussForge().convert(content, "ply", "spz", spz_version=4)["data"])
    return content


def tried(content: bytes, folder: Path, name: str | None = None) -> Gaussians | TempaError:
    """What reading them gives; any other exception is a failed test."""
    path = folder / "file"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        return read(path, name)
    except TempaError as error:
        return error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MEMORY_MAX, f"{peak} bytes"


def refused(content: bytes, folder: Path, name: str | None = None) -> TempaError:
    answer = tried(content, folder, name)
    assert isinstance(answer, TempaError), "it was read"
    assert answer.code == "IMPORT_FAILED"
    assert answer.detail, "it does not say where"
    return answer
