"""The strict reader refuses what two readers may understand differently; one value has one form."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.core.canonical import canonical, fingerprint, read_json
from tempa.core.errors import Refusal


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"a": NaN}', "NaN"),
        (b'{"a": [Infinity]}', "Infinity"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1, "a": 1}', "occurs twice"),
        (b'{"x": {"b": 1, "c": 2, "b": 3}}', "'b' occurs twice"),
        (b'{"a": 1,}', "line 1"),
        (b"", "line 1"),
        (b"\xff\xfe{}", "invalid UTF-8 at byte 0"),
        (b'{"a": "\\ud800"}', "lone surrogate"),
        (b'{"\\udfff": 1}', "lone surrogate"),
        (b'{"a": "\\u0000"}', "U+0000"),
        (b'{"a": ["\\\\\\u0000"]}', "U+0000"),
        (b'{"\\u0000": 1}', "U+0000"),
        (b"\xef\xbb\xbf{}", "BOM"),
        (b"[" * 100_000, "nested deeper"),
        (b"[" * 70 + b"]" * 70, "nested deeper"),
        (b"{} {}", "Extra data"),
    ],
)
def test_unreadable_bodies_are_refused_with_400_and_say_where(body: bytes, why: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_json(body)
    assert caught.value.slug == "unreadable-json"
    assert caught.value.status == 400
    assert why in caught.value.detail


def test_a_number_beyond_floats_is_read_as_infinity_for_the_schema_to_refuse() -> None:
    assert read_json(b'{"a": 1e999}') == {"a": math.inf}
    assert read_json(b"9" * 5000) == math.inf


def test_a_paired_surrogate_is_one_character() -> None:
    assert read_json(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


def test_a_spelt_out_backslash_makes_no_character() -> None:
    assert read_json(b'{"a": "\\\\u0000"}') == {"a": "\\u0000"}


def test_one_value_has_one_form_whatever_the_spelling() -> None:
    spellings = [b'{"b":[45],"a":1}', b'{"a":1.0,"b":[4.5e1]}', b'{ "a" : 10e-1, "b" : [45.0] }']
    assert len({fingerprint(read_json(text)) for text in spellings}) == 1


def test_keys_are_ordered_by_utf16_units_as_rfc_8785_says() -> None:
    # U+10000 is D800 DC00 in UTF-16 and so sorts before U+E000, unlike by code point.
    assert canonical({"\ue000": 1, "\U00010000": 2}) == '{"\U00010000":2,"\ue000":1}'.encode()


CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0")


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53) + 1, 2**53 - 1)
        | st.text(CHARACTERS)
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(CHARACTERS), inner, max_size=4),
        max_leaves=20,
    )
)
def test_the_canonical_form_reads_back_as_the_same_value(value: object) -> None:
    again = read_json(canonical(value))
    assert canonical(again) == canonical(value)
    lenient = json.loads(canonical(value), parse_int=float)  # as every reader with doubles has it
    assert canonical(lenient) == canonical(value)


def test_what_is_not_kept_may_hold_what_no_database_does() -> None:
    text = r'{"memo": "\u0000 \ud800", "amount": 123456789012345678901}'

    with pytest.raises(Refusal):
        read_json(text.encode())
    assert read_json(text.encode(), is_kept=False) == {"memo": "\0 \ud800", "amount": 123456789012345678901}


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', "[NaN]", '["\\', "[" * 99_999, "[" + "7" * 5_000 + "]"])
def test_what_two_readers_may_understand_differently_is_refused_all_the_same(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_json(text.encode(), is_kept=False)
    assert refused.value.slug == "unreadable-json"
