"""Hash trees against RFC 6962's own recursive definitions, and against its published test vectors."""

from __future__ import annotations

from hashlib import sha256

import pytest

from tempa.settlement.merkle import leaf_hash, path_of, root_by_path, root_of

SIZES = [*range(1, 34), 63, 64, 65, 100, 1023, 1024, 1025]

# The eight inputs and roots of certificate-transparency's reference tests.
VECTORS = [b"", b"\x00", b"\x10", b"\x20\x21", b"\x30\x31", b"\x40\x41\x42\x43"]
VECTORS += [bytes(range(0x50, 0x58)), bytes(range(0x60, 0x70))]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


def mth(leaves: list[bytes]) -> bytes:
    """RFC 6962 section 2.1, as it stands there."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    at = split(len(leaves))
    return sha256(b"\x01" + mth(leaves[:at]) + mth(leaves[at:])).digest()


def audit_path(index: int, leaves: list[bytes]) -> list[bytes]:
    """RFC 6962 section 2.1.1."""
    if len(leaves) == 1:
        return []
    at = split(len(leaves))
    if index < at:
        return [*audit_path(index, leaves[:at]), mth(leaves[at:])]
    return [*audit_path(index - at, leaves[at:]), mth(leaves[:at])]


def some(size: int) -> list[bytes]:
    return [b"leaf %d" % number for number in range(size)]


def test_the_root_of_nothing_is_the_hash_of_nothing() -> None:
    assert root_of([]).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize("size", range(1, 9))
def test_roots_are_those_of_the_reference_tests(size: int) -> None:
    assert root_of([leaf_hash(data) for data in VECTORS[:size]]).hex() == ROOTS[size - 1]


@pytest.mark.parametrize("size", SIZES)
def test_roots_and_paths_are_the_rfcs(size: int) -> None:
    leaves = some(size)
    hashes = [leaf_hash(data) for data in leaves]

    assert root_of(hashes) == mth(leaves)
    for index in {0, 1, size // 3, size // 2, size - 2, size - 1} & set(range(size)):
        path = path_of(hashes, index)
        assert path == audit_path(index, leaves)
        assert root_by_path(hashes[index], index, size, path) == mth(leaves)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 13])
def test_no_other_leaf_place_or_path_leads_to_the_root(size: int) -> None:
    leaves = some(size)
    hashes = [leaf_hash(data) for data in leaves]
    root = mth(leaves)
    for index in range(size):
        path = path_of(hashes, index)
        assert root_by_path(leaf_hash(b"another"), index, size, path) != root
        assert root_by_path(hashes[index], index, size, [*path, root]) is None
        assert root_by_path(hashes[index], size, size, path) is None
        if path:
            assert root_by_path(hashes[index], index, size, path[:-1]) is None
            assert root_by_path(hashes[index], index, size, [leaf_hash(b"x"), *path[1:]]) != root
        for other in set(range(size)) - {index}:
            assert root_by_path(hashes[index], other, size, path) != root


def test_a_node_is_no_leaf() -> None:
    """Else two leaves' hashes, put together, would be a leaf of a smaller tree with the same root."""
    left, right = leaf_hash(b"a"), leaf_hash(b"b")

    assert leaf_hash(left + right) != root_of([left, right])
