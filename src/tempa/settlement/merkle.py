"""Hash trees of RFC 6962 (section 2.1): one root over a list, and a short path that shows a leaf in it."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HASH_BYTES = 32
_LEAF, _NODE = b"\x00", b"\x01"  # so that no node can be passed off as a leaf


def leaf_hash(data: bytes) -> bytes:
    """Of one entry of the list."""
    return sha256(_LEAF + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Of two neighbours."""
    return sha256(_NODE + left + right).digest()


def root_of(hashes: Sequence[bytes]) -> bytes:
    """The root over hashes of leaves, or of subtrees of one size, of which only the last may be smaller.

    Of an empty list it is the hash of nothing.
    """
    if not hashes:
        return sha256(b"").digest()
    level = list(hashes)
    while len(level) > 1:  # neighbours in pairs; one that is left over goes up as it is
        paired = [node_hash(left, right) for left, right in zip(level[::2], level[1::2], strict=False)]
        level = paired + level[len(level) & ~1 :]
    return level[0]


def path_of(hashes: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes beside the way from `hashes[index]` up to the root, the lowest first."""
    assert 0 <= index < len(hashes), "a leaf of the list"
    level, path = list(hashes), []
    while len(level) > 1:
        beside = index ^ 1
        if beside < len(level):
            path.append(level[beside])
        paired = [node_hash(left, right) for left, right in zip(level[::2], level[1::2], strict=False)]
        level = paired + level[len(level) & ~1 :]
        index //= 2
    return path


def root_by_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root of a list of `size` that has `leaf` at `index`, by its path; None if no such path can be.

    As RFC 9162 section 2.1.3.2 verifies it.
    """
    if not 0 <= index < size:
        return None
    at, last, root = index, size - 1, leaf
    for beside in path:
        if last == 0:
            return None
        if at % 2 == 1 or at == last:
            root = node_hash(beside, root)
            while at % 2 == 0 and at != 0:
                at, last = at // 2, last // 2
        else:
            root = node_hash(root, beside)
        at, last = at // 2, last // 2
    return root if last == 0 else None
