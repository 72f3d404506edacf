"""One way to write a value, so that it has one hash."""

import hashlib
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladderboard.ledger import decode, digest, encode

SINGLE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
)
VALUES = st.recursive(
    SINGLE, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


def typed(value):
    """Return a value in a form in which 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return {"m": {key: typed(item) for key, item in value.items()}}
    if isinstance(value, list):
        return ["l", *map(typed, value)]
    return (type(value), value)


@given(VALUES)
def test_what_was_written_is_read(value):
    assert typed(decode(encode(value))) == typed(value)


@given(VALUES, VALUES)
def test_two_values_share_a_form_only_if_they_are_the_same(one, other):
    assert (encode(one) == encode(other)) == (typed(one) == typed(other))


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (None, b"N"),
        (True, b"T"),
        (False, b"F"),
        (-12, b"I\0\0\0\0\0\0\0\x03-12"),
        (0.5, b"D" + struct.pack(">d", 0.5)),
        (-0.0, b"D" + bytes(8)),
        ("é", b"S\0\0\0\0\0\0\0\x02\xc3\xa9"),
        (b"\0", b"B\0\0\0\0\0\0\0\x01\0"),
        ([1, []], b"L\0\0\0\0\0\0\0\x02I\0\0\0\0\0\0\0\x011L" + bytes(8)),
        (
            {"b": None, "a": 1},
            b"M\0\0\0\0\0\0\0\x02S\0\0\0\0\0\0\0\x01aI\0\0\0\0\0\0\0\x011S\0\0\0\0\0\0\0\x01bN",
        ),
    ],
)
def test_the_form_is_as_documented(value, form):
    assert encode(value) == form


def test_a_digest_is_the_documented_hash():
    form = b"ladderboard:1:holdout\nI\0\0\0\0\0\0\0\x011"
    assert digest("holdout", 1) == hashlib.sha256(form).digest()


@pytest.mark.parametrize("value", [math.nan, math.inf, {1: 2}, {1, 2}, object(), 1j])
def test_what_has_no_form_is_refused(value):
    with pytest.raises((TypeError, ValueError), match="canonical form"):
        encode(value)


@given(st.binary())
def test_random_bytes_are_refused(form):
    try:
        value = decode(form)
    except ValueError:
        return
    assert encode(value) == form


@given(VALUES, st.data())
def test_a_form_with_a_byte_changed_is_another_value_or_refused(value, data):
    form = bytearray(encode(value))
    at = data.draw(st.integers(0, len(form) - 1))
    form[at] ^= data.draw(st.integers(1, 255))
    try:
        read = decode(bytes(form))
    except ValueError:
        return
    assert typed(read) != typed(value)


@pytest.mark.parametrize(
    "form",
    [
        b"",
        b"NN",
        b"X",
        b"I\0\0\0\0\0\0\0\x0201",  # 01 is not how 1 is written
        b"I\0\0\0\0\0\0\0\x031_0",
        b"D" + struct.pack(">d", -0.0),
        b"D" + struct.pack(">d", math.inf),
        b"L\xff\xff\xff\xff\xff\xff\xff\xff",
        b"M\0\0\0\0\0\0\0\x02S\0\0\0\0\0\0\0\x01bNS\0\0\0\0\0\0\0\x01aN",  # not in order
        b"M\0\0\0\0\0\0\0\x02S\0\0\0\0\0\0\0\x01aNS\0\0\0\0\0\0\0\x01aN",  # twice
        b"M\0\0\0\0\0\0\0\x01LNN" + bytes(8),
        b"M\0\0\0\0\0\0\0\x01L" + bytes(8) + b"N",  # a list for a key
        b"L\0\0\0\0\0\0\0\x01" * 100_000,
    ],
)
def test_damaged_forms_are_refused_as_such(form):
    with pytest.raises(ValueError, match="not a canonical form"):
        decode(form)
