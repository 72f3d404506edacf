"""The golden draws: every machine and every version must draw these.

Made once by ``python tests/tape/test_golden.py``; a change here breaks every ledger ever written.
"""

import hashlib
import json
from fractions import Fraction
from pathlib import Path

import pytest

from ladderboard.tape import DiscreteGaussian, DiscreteLaplace, Laplace, Seed, Stream, Tape

GOLDEN = Path(__file__).parents[1] / "golden" / "tape.json"
KEY = bytes(range(32))
LAWS = {
    "DiscreteGaussian(4000000000)": DiscreteGaussian(4_000_000_000),
    "DiscreteGaussian(5/2)": DiscreteGaussian(Fraction(5, 2)),
    "DiscreteGaussian(1)": DiscreteGaussian(1),
    "DiscreteLaplace(4000000000)": DiscreteLaplace(4_000_000_000),
    "DiscreteLaplace(7/3)": DiscreteLaplace(Fraction(7, 3)),
    "Laplace(0.01145)": Laplace(0.01145),
    "Seed": Seed(),
}
ADDRESSES = [
    (ladder, question, context)
    for ladder in (0, 1, 2**63)
    for question in (0, 1, 2, 10**6)
    for context in ("", "some submission")
]


def draws():
    tape = Tape(key=KEY)
    for ladder, question, context in ADDRESSES:
        for slot in range(3):
            for name, law in LAWS.items():
                # Filler laws leave the draw alone: only the place in the tuple is the slot.
                laws = (DiscreteLaplace(1),) * slot + (law,)
                where = {"ladder": ladder, "question": question, "context": context.encode()}
                drawn = tape.draw(laws, **where)[slot]
                form = drawn.hex() if isinstance(drawn, bytes | float) else drawn
                yield [ladder, question, slot, context, name, form]


def test_golden_draws():
    assert list(draws()) == json.loads(GOLDEN.read_text())


def test_the_stream_is_keyed_blake2b_over_the_written_address():
    place = Stream.address(3, 5, b"ctx")
    message = (
        (3).to_bytes(8, "big")
        + (5).to_bytes(8, "big")
        + hashlib.sha256(b"ctx").digest()
        + (2).to_bytes(4, "big")
    )
    blocks = b"".join(
        hashlib.blake2b(
            message + i.to_bytes(4, "big"), key=KEY, digest_size=64, person=b"ladderboard.tape"
        ).digest()
        for i in range(4)
    )
    stream = Stream(KEY, place, 2)
    taken = b"".join(stream.take(count) for count in (1, 0, 63, 64, 7, 100))
    assert taken == blocks[: len(taken)]


@pytest.mark.parametrize("bound", [1, 2, 3, 255, 256, 257, 10**40])
def test_below_stays_below_and_reads_whole_bytes(bound):
    stream = Stream(KEY, Stream.address(0, 0), 0)
    assert all(0 <= stream.uniform_below(bound) < bound for _ in range(200))


def test_a_seed_is_a_key():
    key = hashlib.sha256(b"ladderboard.tape seed 7").digest()
    laws = tuple(LAWS.values())
    place = {"ladder": 1, "question": 2}
    assert Tape(seed=7).draw(laws, **place) == Tape(key=key).draw(laws, **place)


if __name__ == "__main__":
    rows = ",\n".join(json.dumps(row) for row in draws())
    GOLDEN.write_text(f"[\n{rows}\n]\n")
