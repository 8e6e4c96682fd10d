"""Binary glTF 2.0: all triangles of its scene, placed by its nodes, with colours and base-colour textures.

Only what lies in the file is read. Of a material it is the base colour that counts: light is the
viewer's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat.mesh import accessors, materials
from tempa.engines.splat.mesh.faults import unreadable
from tempa.engines.splat.mesh.nodes import placed
from tempa.engines.splat.mesh.surface import FACES_MAX, Surface, joined, part

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from numpy.typing import NDArray

    from tempa.engines.splat.mesh.accessors import Document

    Attributes: TypeAlias = Mapping[str, Any]

_TRIANGLES, _STRIP, _FAN = 4, 5, 6
_EXTENSIONS = {
    "EXT_texture_webp",
    "KHR_materials_unlit",
    "KHR_mesh_quantization",
    "KHR_texture_transform",
}
_LOOK_ONLY = "KHR_materials_"  # how light plays on it, which is not looked at


def read(data: bytes) -> Surface:
    """Read the default scene.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    document = accessors.opened(data)
    _require_known_extensions(document)
    try:
        return _scene(document)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        # The JSON is of a shape that the specification does not allow.
        raise unreadable("its JSON is not that of a scene", reason=type(error).__name__) from error


def _require_known_extensions(document: Document) -> None:
    required = document.tree.get("extensionsRequired", [])
    names = [str(name) for name in required] if isinstance(required, list) else [str(required)]
    unknown = [n for n in names if n not in _EXTENSIONS and not n.startswith(_LOOK_ONLY)]
    if unknown:
        raise unreadable("it needs an extension that is not read", extensions=unknown[:8])


def _scene(document: Document) -> Surface:
    paints = materials.Paints(document)
    meshes: dict[int, list[Surface]] = {}
    parts, total = [], 0
    for number, matrix in placed(document):
        if number not in meshes:
            meshes[number] = _mesh(document, number, paints, FACES_MAX - total)
        total += sum(len(each) for each in meshes[number])
        if total > FACES_MAX:
            raise unreadable("it has too many triangles", limit=FACES_MAX)
        parts += [_moved(each, matrix) for each in meshes[number]]
    return joined(parts) if parts else part(np.zeros((0, 3, 3)), materials.DEFAULT)


def _mesh(document: Document, number: int, paints: materials.Paints, room: int) -> list[Surface]:
    parts = []
    for primitive in document.entry("meshes", number)["primitives"]:
        faces = _faces(document, primitive)
        room -= len(faces)
        if room < 0:
            raise unreadable("it has too many triangles", limit=FACES_MAX)
        if len(faces):
            parts.append(_primitive(document, primitive, faces, paints))
    return parts


def _faces(document: Document, primitive: Attributes) -> NDArray[np.int64]:
    """Vertex numbers (f, 3). Points and lines have none."""
    mode = primitive.get("mode", _TRIANGLES)
    if mode not in (_TRIANGLES, _STRIP, _FAN):
        return np.zeros((0, 3), np.int64)
    count = len(document.values(primitive["attributes"]["POSITION"], 3))
    if "indices" in primitive:
        order = document.values(primitive["indices"], 1)[:, 0].astype(np.int64)
    else:
        order = np.arange(count)
    if len(order) and not 0 <= order.min() <= order.max() < count:
        raise unreadable("an index is beyond the vertices", vertices=count)
    return _triangles(order, mode)


def _triangles(order: NDArray[np.int64], mode: int) -> NDArray[np.int64]:
    if mode == _TRIANGLES:
        return order[: len(order) // 3 * 3].reshape(-1, 3)
    f = max(len(order) - 2, 0)
    here = np.arange(f)
    if mode == _FAN:
        return np.stack((order[here + 1], order[here + 2], np.repeat(order[:1], f)), axis=1)
    odd = here % 2  # every second triangle of a strip runs the other way
    return np.stack((order[here], order[here + 1 + odd], order[here + 2 - odd]), axis=1)


def _primitive(
    document: Document, primitive: Attributes, faces: NDArray[np.int64], paints: materials.Paints
) -> Surface:
    attributes = primitive["attributes"]
    corners = document.values(attributes["POSITION"], 3).astype(np.float64)[faces]
    colors = _colors(document, attributes, faces)
    paint, place = paints.of(primitive.get("material"), colored=colors is not None)
    uvs = None
    if place is not None and f"TEXCOORD_{place.channel}" in attributes:
        values = document.values(attributes[f"TEXCOORD_{place.channel}"], 2)
        uvs = place.applied(values[faces].astype(np.float64)).astype(np.float32)
    return part(corners, paint, colors=colors, uvs=uvs)


def _colors(
    document: Document, attributes: Attributes, faces: NDArray[np.int64]
) -> NDArray[np.float32] | None:
    """Linear already, as glTF has them."""
    if "COLOR_0" not in attributes:
        return None
    found = document.values(attributes["COLOR_0"]).astype(np.float32)
    colors = np.ones((len(found), 4), np.float32)
    colors[:, : found.shape[1]] = found
    return np.nan_to_num(colors, nan=1.0).clip(0.0, 1.0)[faces]


def _moved(surface: Surface, matrix: NDArray[np.float64]) -> Surface:
    moved = surface.moved_to(surface.corners @ matrix[:3, :3].T + matrix[:3, 3])
    mirrored = np.linalg.det(matrix[:3, :3]) < 0.0  # triangles run the other way then
    return moved.turned_over() if mirrored else moved
