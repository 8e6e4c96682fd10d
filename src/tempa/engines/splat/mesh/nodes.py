"""The nodes of a glTF scene: which mesh stands where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat.mesh.faults import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from tempa.engines.splat.mesh.accessors import Document

NODES_MAX = 100_000


def placed(document: Document) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Meshes by number, each with its matrix (4, 4) to the scene.

    Nodes are trees by the specification. One that is come to twice, by a cycle or by two parents, makes
    the file invalid: were it followed, 60 nodes of two parents each would be 2^30 meshes.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    waiting = [(number, np.eye(4)) for number in reversed(_roots(document))]
    seen: set[int] = set()
    while waiting:
        number, above = waiting.pop()
        node = document.entry("nodes", number)
        if number in seen or len(seen) >= NODES_MAX:
            raise unreadable("its nodes are no trees, or too many", node=number, limit=NODES_MAX)
        seen.add(number)
        matrix = above @ _matrix(node)
        if "mesh" in node:
            yield node["mesh"], matrix
        waiting += [(child, matrix) for child in reversed(node.get("children", []))]


def _roots(document: Document) -> list[int]:
    if document.tree.get("scenes"):
        return list(document.entry("scenes", document.tree.get("scene", 0)).get("nodes", []))
    nodes = document.tree.get("nodes", [])
    children = {child for node in nodes for child in node.get("children", [])}
    return [number for number in range(len(nodes)) if number not in children]


def _matrix(node: Mapping[str, Any]) -> NDArray[np.float64]:
    if "matrix" in node:
        return np.array(node["matrix"], np.float64).reshape(4, 4).T  # given column by column
    matrix = np.eye(4)
    matrix[:3, :3] = _turned(node.get("rotation", (0, 0, 0, 1))) * np.array(
        node.get("scale", (1, 1, 1)), np.float64
    )
    matrix[:3, 3] = node.get("translation", (0, 0, 0))
    return matrix


def _turned(quaternion: Any) -> NDArray[np.float64]:
    x, y, z, w = np.array(quaternion, np.float64)
    length = x * x + y * y + z * z + w * w
    if not length > 0.0:
        return np.eye(3)
    s = 2.0 / length
    return np.array(
        [
            [1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
            [s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)],
            [s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)],
        ]
    )
