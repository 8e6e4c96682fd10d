from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.adapters.stores.sql import decode, encode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_what_is_kept_as_json_comes_back_the_same(value: object) -> None:
    assert decode(encode(value)) == value


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_refused_and_not_written(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode({"volume": number})


def test_an_object_of_ours_is_not_json_by_accident() -> None:
    with pytest.raises(TypeError, match="not a JSON value: object"):
        encode([object()])


def test_a_null_column_is_none() -> None:
    assert decode(None) is None
