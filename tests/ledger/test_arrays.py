"""Arrays: equal values are written alike, however they were held."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladderboard.ledger import decode, encode, read_array, write_array

WHOLE = st.lists(st.integers(-(2**63), 2**63 - 1))
REAL = st.lists(st.floats(allow_nan=False, allow_infinity=False))
TEXT = st.lists(st.text(st.characters(exclude_categories=())))


def form(values, dtype=None):
    return encode(write_array(np.array(values, dtype=dtype)))


def objects(values):
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


@given(WHOLE)
def test_whole_numbers_come_back(values):
    array = np.array(values, dtype=np.int64)
    assert read_array(decode(encode(write_array(array)))).tolist() == values


@given(REAL)
def test_real_numbers_come_back(values):
    assert read_array(write_array(np.array(values, dtype=np.float64))).tolist() == values


@given(TEXT)
def test_text_comes_back(values):
    assert read_array(write_array(objects(values))).tolist() == values


@given(st.lists(st.sampled_from([0, 1, 2, 300, -70000]), min_size=1))
def test_how_numbers_are_held_does_not_matter(values):
    dtypes = (np.int32, np.int64, np.float32, np.float64)
    assert len({form(values, dtype) for dtype in dtypes}) == 1


def test_booleans_are_zero_and_one():
    assert form([True, False]) == form([1, 0]) == form([1.0, 0.0])


@given(TEXT, TEXT)
def test_texts_have_one_form_only_if_they_are_the_same(one, other):
    same = encode(write_array(objects(one))) == encode(write_array(objects(other)))
    assert same == (one == other)


@given(REAL, REAL)
def test_numbers_have_one_form_only_if_they_are_the_same(one, other):
    assert (form(one, np.float64) == form(other, np.float64)) == (one == other)


@pytest.mark.parametrize(
    ("values", "type_name"),
    [([127, -128], "i1"), ([128], "i2"), ([-129], "i2"), ([2**15], "i4"), ([2**31], "i8"),
     ([0.5], "f8"), ([2.0**63], "f8"), ([-(2**63)], "i8"), ([], "i1")],
)  # fmt: skip
def test_the_fewest_bytes_are_taken(values, type_name):
    assert write_array(np.array(values))["type"] == type_name


def test_large_unsigned_numbers_have_different_encodings():
    large = np.array([2**64 - 1, 2**63], dtype=np.uint64)
    assert write_array(large)["type"] == "u8"
    assert read_array(write_array(large)).tolist() == large.tolist()


def test_a_shape_belongs_to_the_form():
    assert form([[1, 2]]) != form([[1], [2]]) != form([1, 2])
    assert read_array(write_array(np.array([["a", "b"]]))).shape == (1, 2)


def test_text_and_numbers_may_be_mixed():
    mixed = objects([1, "1", 2.5, True])
    assert read_array(write_array(mixed)).tolist() == [1, "1", 2.5, 1]
    assert encode(write_array(mixed)) != encode(write_array(objects(["1", "1", 2.5, True])))
