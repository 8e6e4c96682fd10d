"""OBJ and PLY, by trimesh, which is handed the bytes and no way to any other file."""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import trimesh

from tempa.engines.splat.mesh.faults import unreadable
from tempa.engines.splat.mesh.surface import FACES_MAX, Paint, Surface, joined, part
from tempa.engines.splat.mesh.texture import to_linear

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEXT_BYTES_MAX = 256 * 1024 * 1024
logging.getLogger("trimesh").setLevel(logging.CRITICAL)  # it would print what it skips, materials first


def is_ply(data: bytes) -> bool:
    """It says so in its first line."""
    return data[:3] == b"ply" and data[3:4] in (b"\n", b"\r")


def is_obj(data: bytes) -> bool:
    """It is text, and one of its lines is a vertex."""
    return b"\0" not in data[:4096] and (data.startswith(b"v ") or b"\nv " in data)


def read(data: bytes, kind: str) -> Surface:
    """Read "obj" or "ply". An OBJ's material library is never opened: its parts have no colour then.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    if len(data) > TEXT_BYTES_MAX:
        raise unreadable("it is too large", size_bytes=len(data), limit=TEXT_BYTES_MAX)
    try:
        loaded = trimesh.load_scene(
            io.BytesIO(data), file_type=kind, resolver=None, process=False, skip_materials=True
        )
        meshes = [mesh for mesh in loaded.dump() if isinstance(mesh, trimesh.Trimesh)]
        parts = [_part(mesh) for mesh in meshes]
    except MemoryError:
        raise
    except Exception as error:
        # A parser of text written for honest files: what it raises on others has no one class.
        raise unreadable(f"it is no {kind.upper()} file", reason=type(error).__name__) from error
    total = sum(len(each) for each in parts)
    if total > FACES_MAX:
        raise unreadable("it has too many triangles", triangles=total, limit=FACES_MAX)
    return joined(parts) if parts else part(np.zeros((0, 3, 3)), Paint())


def _part(mesh: trimesh.Trimesh) -> Surface:
    faces = np.asarray(mesh.faces, np.int64)
    colors = _colors(mesh, faces)
    return part(np.asarray(mesh.vertices, np.float64)[faces], Paint(even=colors is None), colors=colors)


def _colors(mesh: Any, faces: NDArray[np.int64]) -> NDArray[np.float32] | None:
    """Of vertices or of faces, as the file has them: in sRGB, by custom."""
    kind = getattr(mesh.visual, "kind", None)
    if kind == "vertex":
        colors = np.asarray(mesh.visual.vertex_colors, np.float64)[faces] / 255.0
    elif kind == "face":
        colors = np.repeat(np.asarray(mesh.visual.face_colors, np.float64)[:, None], 3, axis=1) / 255.0
    else:
        return None
    return np.concatenate((to_linear(colors[..., :3]), colors[..., 3:4]), axis=-1).astype(np.float32)
