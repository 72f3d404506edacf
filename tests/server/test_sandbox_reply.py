"""What a parser says: only predictions of the right shape and kind, only sentences."""

import json

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidPredictions
from ladderboard.files import Limits, Problem, Roster
from ladderboard.server._sandbox import _worker as wire
from ladderboard.server._sandbox._reply import InvalidWorkerReply, Spec, read_refusal

N = 4
ONE = Spec(Roster.of(N, kind="number"), lb.loss("zero_one"), Limits())
TEXT = Spec(Roster.of(N, kind="text"), lb.loss("zero_one"), Limits())
THREE = Spec(Roster.of(N, kind="number"), lb.loss("brier", classes=[0, 1, 2]), Limits())
SEVERAL = Spec(Roster.of(N, kind="number"), lb.loss("top_k", k=2), Limits(columns=5))
GOOD = [
    (ONE, np.array([1, 2, 3, -300])),
    (ONE, np.array([1.0, 2, 3, 4])),
    (ONE, np.array([1.5, 2, 3, 4])),
    (TEXT, np.array(["a", "", "鳥", "dög"], dtype=np.dtypes.StringDType())),
    (THREE, np.full((N, 3), 1 / 3)),
    (SEVERAL, np.arange(2 * N).reshape(N, 2)),
]


@pytest.mark.parametrize(("spec", "array"), GOOD)
def test_predictions_come_back_as_they_are(spec, array):
    form = wire._pack_array(array)
    assert len(form) <= spec.max_reply_bytes
    read = spec.submission(form, None).values
    assert (read.dtype, read.shape) == (array.dtype, array.shape)
    assert (read == array).all()


def form(held=b"i", kind=0, counted=0, shape=(1, N, 0), lengths=b"", values=bytes(N)):
    head = wire.ARRAY_HEAD.pack(held, kind, counted, *shape, len(lengths))
    return head + lengths + values


FOUR = (1, N, 0)
BAD = {
    "nothing": (ONE, b""),
    "text for numbers": (ONE, form(b"T", 5, 0, FOUR, bytes([1] * N), b"abcd")),
    "numbers for text": (TEXT, form()),
    "objects": (ONE, form(b"O")),
    "unknown type": (ONE, form(kind=9)),
    "reals as whole numbers": (ONE, form(kind=4, values=bytes(8 * N))),
    "a row less": (ONE, form(shape=(1, N - 1, 0), values=bytes(N - 1))),
    "a byte less": (ONE, form(values=bytes(N - 1))),
    "a byte more": (ONE, form(values=bytes(N + 1))),
    "lengths for numbers": (ONE, form(lengths=b"1")),
    "a column more": (ONE, form(shape=(2, N, 1))),
    "no dimension": (ONE, form(shape=(0, N, 0))),
    "another width": (THREE, form(b"f", 4, shape=(2, N, 2), values=bytes(8 * 2 * N))),
    "no width": (SEVERAL, form(shape=(2, N, 0), values=b"")),
    "flat": (SEVERAL, form()),
    "not finite": (ONE, form(b"f", 4, values=np.full(N, np.nan, ">f8").tobytes())),
    "infinite": (ONE, form(b"f", 4, values=np.full(N, np.inf, ">f8").tobytes())),
    "lengths too many": (TEXT, form(b"T", 5, 0, FOUR, bytes([1] * N), b"abcde")),
    "a length below 0": (TEXT, form(b"T", 5, 0, FOUR, b"\x02\x03\x00\xff", b"abcd")),
    "lengths that go round": (
        TEXT,
        form(b"T", 5, 3, FOUR, np.array([2**62] * 4, ">i8").tobytes(), b""),
    ),
    "half a character": (TEXT, form(b"T", 5, 0, FOUR, bytes([1] * N), b"abc\xff")),
    "a surrogate": (TEXT, form(b"T", 5, 0, FOUR, bytes([1] * N), b"abc\xed\xa0\x80")),
    "real lengths": (TEXT, form(b"T", 5, 4, FOUR, bytes(8 * N), b"")),
    "text lengths": (TEXT, form(b"T", 5, 5, FOUR, bytes(N), b"")),
}


@pytest.mark.parametrize(("spec", "said"), BAD.values(), ids=BAD)
def test_anything_else_is_not_believed(spec, said):
    with pytest.raises(InvalidWorkerReply):
        spec.submission(said, None)


PROBLEM = ["missing_id", "id", 2, ["a", "b"], "Missing."]


def said(**changes):
    whole = {"message": "No.", "problems": [PROBLEM], **changes}
    return json.dumps(whole).encode()


def test_a_refusal_comes_back_without_what_a_terminal_would_obey():
    error = read_refusal(said(message="one\n\x1b[2Jtwo\u202e"))
    assert isinstance(error, InvalidPredictions)
    assert str(error) == "one\n?[2Jtwo?"
    assert error.problems == (Problem("missing_id", "id", 2, ("a", "b"), "Missing."),)
    surrogate = read_refusal(said(problems=[["x", "\ud800", 1, ["\udfff"], "y"]]))
    assert surrogate.problems[0].column == surrogate.problems[0].ids[0] == "?"


@pytest.mark.parametrize(
    "form",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        said(message=1),
        said(problems=None),
        said(problems=[PROBLEM] * 101),
        said(problems=[["<script>", *PROBLEM[1:]]]),
        said(problems=[PROBLEM[:4]]),
        said(problems=[[*PROBLEM[:2], True, *PROBLEM[3:]]]),
        said(problems=[[*PROBLEM[:2], -1, *PROBLEM[3:]]]),
        said(problems=[[*PROBLEM[:3], ["a"] * 11, "x"]]),
        said(problems=[[*PROBLEM[:3], [1], "x"]]),
        said(problems=[[*PROBLEM[:4], "x" * 1_000_001]]),
        said(problems=[["x", "c" * 101, *PROBLEM[2:]]]),
    ],
)
def test_a_refusal_that_no_reader_writes_is_not_believed(form):
    with pytest.raises(InvalidWorkerReply):
        read_refusal(form)
