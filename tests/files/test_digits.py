"""Integers parsed eight digits at a time equal the written ones, or nothing is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladderboard.files._formats import _csv
from ladderboard.files._formats._csv import read_digits

HEADER = b"some header\n"


def csv_lines(rows, end="\n", header=HEADER):
    lines = "\n".join(",".join(map(str, row)) for row in rows)
    return header + lines.encode() + end.encode()


@pytest.mark.parametrize("step", [2**19, 64])
@given(st.integers(1, 4), st.integers(0, len(HEADER)), st.data())
def test_digits(step, width, start, data):
    number = st.one_of(st.integers(0, 9), st.integers(0, 99_999_999))
    rows = data.draw(st.lists(st.lists(number, min_size=width, max_size=width), min_size=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_csv, "_DIGIT_BLOCK_BYTES", step)
        for end in ("\n", ""):
            lines = csv_lines(rows, end, HEADER[len(HEADER) - start :])
            columns = read_digits(lines, start, ",", width)
            assert [column.tolist() for column in columns] == [
                list(column) for column in zip(*rows, strict=True)
            ]


LINES = (
    *(b"1,", b",1", b"1", b"1,2,3", b"1;2", b"1,-2", b"1, 2"),
    *(b"1,2.", b"1,a", b"1,123456789", b"", b"1\n,2"),
)


@pytest.mark.parametrize("line", LINES)
def test_lines_with_other_characters_are_not_read(line):
    for before in (b"", b"1,2\n"):
        for after in (b"", b"3,4\n"):
            data = HEADER + before + line + b"\n" + after
            assert read_digits(data, len(HEADER), ",", 2) is None


def test_unsupported_separators_are_not_read():
    assert read_digits(HEADER + b"1|2\n", len(HEADER), "|", 2) is None


def test_a_short_first_line_of_many_columns():
    for width in (3, 100, 10_000):
        data = HEADER + b"1,2\n" + b",".join([b"1"] * width) + b"\n"
        assert read_digits(data, len(HEADER), ",", width) is None
        row = ",".join(["7"] * width).encode() + b"\n"
        columns = read_digits(HEADER + row * 2, len(HEADER), ",", width)
        assert [column.tolist() for column in columns] == [[7, 7]] * width
