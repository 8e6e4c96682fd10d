"""Base58, against the vectors of draft-msporny-base58 and Solana's own types."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from solders.pubkey import Pubkey
from solders.signature import Signature

from tempa.core.base58 import decode, encode, is_address, is_signature

VECTORS = [
    (b"", ""),
    (b"Hello World!", "2NEpo7TZRRrLZSi2U"),
    (
        b"The quick brown fox jumps over the lazy dog.",
        "USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z",
    ),
    (bytes.fromhex("0000287fb4cd"), "11233QC4"),
]


@pytest.mark.parametrize(("data", "text"), VECTORS)
def test_it_spells_as_the_draft_does(data: bytes, text: str) -> None:
    assert encode(data) == text
    assert decode(text) == data


@given(st.binary(min_size=32, max_size=32))
def test_keys_are_spelled_as_by_solana(data: bytes) -> None:
    assert encode(data) == str(Pubkey(data))
    assert is_address(encode(data))


@given(st.binary(min_size=64, max_size=64))
def test_signatures_are_spelled_as_by_solana(data: bytes) -> None:
    assert encode(data) == str(Signature(data))
    assert is_signature(encode(data))


@given(st.binary(max_size=80))
def test_only_the_right_number_of_bytes_is_a_key_or_a_signature(data: bytes) -> None:
    text = encode(data)

    assert decode(text) == data
    assert is_address(text) == (len(data) == 32)
    assert is_signature(text) == (len(data) == 64)


@pytest.mark.parametrize("letter", ["0", "O", "I", "l", "+", " ", "\u0661", "\0"])
def test_a_letter_outside_of_the_alphabet_is_refused(letter: str) -> None:
    with pytest.raises(ValueError, match="base58"):
        decode("2NEpo7" + letter)
    assert not is_address("1" * 31 + letter)


@pytest.mark.parametrize("value", [None, 7, b"1" * 32, ["1"] * 32, "1" * 31, "1" * 45, "z" * 10**6])
def test_what_is_no_text_of_that_length_is_neither(value: object) -> None:
    assert not is_address(value)
    assert not is_signature(value)


@pytest.mark.parametrize(("is_kind", "size_bytes"), [(is_address, 32), (is_signature, 64)])
def test_the_lowest_and_the_highest_of_a_size_are_told_from_their_neighbours(
    is_kind: Callable[[object], bool], size_bytes: int
) -> None:
    lowest, highest = 256 ** (size_bytes - 1), 256**size_bytes - 1

    assert is_kind(encode(lowest.to_bytes(size_bytes, "big")))
    assert is_kind(encode(highest.to_bytes(size_bytes, "big")))
    assert not is_kind(encode((lowest - 1).to_bytes(size_bytes - 1, "big")))
    assert not is_kind(encode((highest + 1).to_bytes(size_bytes + 1, "big")))
    assert is_kind("1" * size_bytes)
    assert is_kind("1" + encode((lowest - 1).to_bytes(size_bytes - 1, "big")))
    assert not is_kind("1" * (size_bytes + 1))
