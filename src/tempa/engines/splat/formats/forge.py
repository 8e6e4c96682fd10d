"""Reading through GaussForge, an implementation that is not ours: the second opinion, and zstd.

It hands a .ply on, whatever it reads: asked for its own arrays, version 0.6.0 fails on files of degree 0.
Coordinates stay as they stand in the file, whatever its axes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.formats import ply, ply_header
from tempa.engines.splat.formats.axes import turned
from tempa.engines.splat.formats.source import malformed
from tempa.engines.splat.formats.table import FORMATS

if TYPE_CHECKING:
    from tempa.engines.splat.gaussians import Gaussians

NAMES = {name: "compressed.ply" if name == "compressed_ply" else name for name in FORMATS if name != "glb"}


def read(content: bytes, name: str) -> Gaussians:
    """A whole file of a format in `NAMES`, in the family's frame.

    It must be trusted, or checked for what its header promises: this is C++ with its own ideas.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    from gaussforge import GaussForge

    try:
        answer = GaussForge().convert(content, NAMES[name], "ply")
    except (RuntimeError, ValueError, KeyError) as error:
        raise malformed("another reader cannot read it", reason=str(error)[:200]) from error
    if "data" not in answer:
        raise malformed("another reader cannot read it", reason=str(answer.get("error"))[:200])
    data = np.frombuffer(answer["data"], np.uint8)
    found = ply.read(data, *ply_header.parse(data))
    return turned(found) if FORMATS[name].axes == "RUB" else found
