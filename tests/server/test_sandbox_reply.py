"""Replies of a parser: only predictions of the right shape and kind, or a refusal, are accepted."""

import json

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidPredictions
from ladderboard.files import Limits, Problem, Roster
from ladderboard.server._sandbox import _worker as wire
from ladderboard.server._sandbox._process import (
    InvalidWorkerReply,
    Spec,
    read_notes,
    read_refusal,
)

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
def test_predictions_are_returned_unchanged(spec, array):
    form = wire._pack_array(array)
    assert len(form) <= spec.max_reply_bytes
    aligned = spec.submission(form).values
    assert (aligned.dtype, aligned.shape) == (array.dtype, array.shape)
    assert (aligned == array).all()


def pack_reply(type_code=b"i", kind=0, counted=0, shape=(1, N, 0), lengths=b"", values=bytes(N)):
    head = wire.ARRAY_HEAD.pack(type_code, kind, counted, *shape, len(lengths))
    return head + lengths + values


FOUR = (1, N, 0)
BAD = {
    "nothing": (ONE, b""),
    "text for numbers": (ONE, pack_reply(b"T", 5, 0, FOUR, bytes([1] * N), b"abcd")),
    "numbers for text": (TEXT, pack_reply()),
    "objects": (ONE, pack_reply(b"O")),
    "unknown type": (ONE, pack_reply(kind=9)),
    "reals as whole numbers": (ONE, pack_reply(kind=4, values=bytes(8 * N))),
    "a row less": (ONE, pack_reply(shape=(1, N - 1, 0), values=bytes(N - 1))),
    "a byte less": (ONE, pack_reply(values=bytes(N - 1))),
    "a byte more": (ONE, pack_reply(values=bytes(N + 1))),
    "lengths for numbers": (ONE, pack_reply(lengths=b"1")),
    "a column more": (ONE, pack_reply(shape=(2, N, 1))),
    "no dimension": (ONE, pack_reply(shape=(0, N, 0))),
    "another width": (THREE, pack_reply(b"f", 4, shape=(2, N, 2), values=bytes(8 * 2 * N))),
    "no width": (SEVERAL, pack_reply(shape=(2, N, 0), values=b"")),
    "flat": (SEVERAL, pack_reply()),
    "not finite": (ONE, pack_reply(b"f", 4, values=np.full(N, np.nan, ">f8").tobytes())),
    "infinite": (ONE, pack_reply(b"f", 4, values=np.full(N, np.inf, ">f8").tobytes())),
    "lengths too many": (TEXT, pack_reply(b"T", 5, 0, FOUR, bytes([1] * N), b"abcde")),
    "a length below 0": (TEXT, pack_reply(b"T", 5, 0, FOUR, b"\x02\x03\x00\xff", b"abcd")),
    "lengths that go round": (
        TEXT,
        pack_reply(b"T", 5, 3, FOUR, np.array([2**62] * 4, ">i8").tobytes(), b""),
    ),
    "half a character": (TEXT, pack_reply(b"T", 5, 0, FOUR, bytes([1] * N), b"abc\xff")),
    "a surrogate": (TEXT, pack_reply(b"T", 5, 0, FOUR, bytes([1] * N), b"abc\xed\xa0\x80")),
    "real lengths": (TEXT, pack_reply(b"T", 5, 4, FOUR, bytes(8 * N), b"")),
    "text lengths": (TEXT, pack_reply(b"T", 5, 5, FOUR, bytes(N), b"")),
}


@pytest.mark.parametrize(("spec", "reply"), BAD.values(), ids=BAD)
def test_invalid_replies_are_rejected(spec, reply):
    with pytest.raises(InvalidWorkerReply):
        spec.submission(reply)


PROBLEM = ["missing_id", "id", 2, ["a", "b"], "Missing."]


def pack_refusal(**changes):
    content = {"message": "No.", "problems": [PROBLEM], **changes}
    return json.dumps(content).encode()


def test_control_characters_are_removed_from_a_refusal():
    error = read_refusal(pack_refusal(message="one\n\x1b[2Jtwo\u202e"))
    assert isinstance(error, InvalidPredictions)
    assert str(error) == "one\n?[2Jtwo?"
    assert error.problems == (Problem("missing_id", "id", 2, ("a", "b"), "Missing."),)
    surrogate = read_refusal(pack_refusal(problems=[["x", "\ud800", 1, ["\udfff"], "y"]]))
    assert surrogate.problems[0].column == surrogate.problems[0].ids[0] == "?"


@pytest.mark.parametrize(
    "form",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        pack_refusal(message=1),
        pack_refusal(problems=None),
        pack_refusal(problems=[PROBLEM] * 101),
        pack_refusal(problems=[["<script>", *PROBLEM[1:]]]),
        pack_refusal(problems=[PROBLEM[:4]]),
        pack_refusal(problems=[[*PROBLEM[:2], True, *PROBLEM[3:]]]),
        pack_refusal(problems=[[*PROBLEM[:2], -1, *PROBLEM[3:]]]),
        pack_refusal(problems=[[*PROBLEM[:3], ["a"] * 11, "x"]]),
        pack_refusal(problems=[[*PROBLEM[:3], [1], "x"]]),
        pack_refusal(problems=[[*PROBLEM[:4], "x" * 1_000_001]]),
        pack_refusal(problems=[["x", "c" * 101, *PROBLEM[2:]]]),
    ],
)
def test_invalid_refusals_are_rejected(form):
    with pytest.raises(InvalidWorkerReply):
        read_refusal(form)


@pytest.mark.parametrize("form", [b"", b"{}", b"[1]", b"[" * 100_000, json.dumps(["x"] * 101)])
def test_invalid_notes_are_rejected(form):
    assert read_notes(b'["one\\u001b two"]') == ["one? two"]
    with pytest.raises(InvalidWorkerReply):
        read_notes(form)
