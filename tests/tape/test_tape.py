"""What a tape promises: pure draws, kept secrets, no two alike."""

import copy
import logging
import pickle
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladderboard.errors import InvalidSetting
from ladderboard.tape import DiscreteGaussian, DiscreteLaplace, Laplace, NumpyTape, Seed, Tape
from ladderboard.tape._numpy import _block_of_question

LAWS = (DiscreteGaussian(10**9), DiscreteLaplace(10**9), Laplace(1.0), Seed())
KEY = bytes(range(100, 132))

address = st.tuples(
    st.integers(0, 2**63), st.integers(0, 10**7), st.binary(max_size=4), st.booleans()
)


def draw(tape, where):
    ladder, question, context, _ = where
    return tape.draw(LAWS, ladder=ladder, question=question, context=context)


@given(st.lists(address, min_size=2, max_size=6, unique_by=lambda a: a[:3]), st.randoms())
def test_draws_depend_on_their_address_and_on_nothing_else(places, random):
    for make in (Tape, NumpyTape):
        first = make(seed=3)
        drawn = {place: draw(first, place) for place in places}
        random.shuffle(places)
        second = make(seed=3)
        assert {place: draw(second, place) for place in places} == drawn
        # Wide laws at different addresses agree with probability below 1e-9 each.
        assert len(set(drawn.values())) == len(places)
        assert all(draw(make(seed=4), place) != drawn[place] for place in places)


@given(st.integers(0, 30_000), st.integers(0, 20_000))
def test_many_at_once_is_one_by_one(first, count):
    tape = NumpyTape(seed=9)
    many = tape.draw_many(LAWS, ladder=2, first=first, count=count)
    assert all(len(column) == count for column in many)
    for at in {0, count // 2, count - 1} & set(range(count)):
        one = NumpyTape(seed=9).draw(LAWS, ladder=2, question=first + at)
        assert tuple(column[at] for column in many) == one


def test_blocks_tile_the_questions():
    at = 0
    for _ in range(12):
        number, first, size = _block_of_question(at)
        assert (first, _block_of_question(at + size - 1)) == (at, (number, first, size))
        at += size


def test_context_and_question_both_matter_to_the_twin():
    tape = NumpyTape(seed=1)
    drawn = {
        tape.draw(LAWS, ladder=ladder, question=question, context=context)
        for ladder in (0, 1)
        for question in (1, 2)
        for context in (b"", b"a", b"b")
    }
    assert len(drawn) == 12


def test_a_fresh_tape_takes_its_key_from_the_operating_system():
    for make in (Tape, NumpyTape):
        assert draw(make(), (0, 1, b"", 0)) != draw(make(), (0, 1, b"", 0))


def test_only_a_tape_with_a_real_key_is_fit_for_real_use():
    assert Tape(seed=1).seeded
    assert NumpyTape().seeded
    assert not Tape().seeded
    assert not Tape(key=KEY).seeded


def test_a_key_is_never_shown(caplog):
    tape = Tape(key=KEY)
    stream_repr = []
    law = DiscreteLaplace(3)

    class Peek(type(law)):
        def sample(self, stream):
            stream_repr.append(repr(stream))
            return 0

    tape.draw((Peek(3),), ladder=0, question=0)
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("x").warning("%s %r %s", tape, tape, [tape])
    shown = [repr(tape), str(tape), f"{tape}", caplog.text, *stream_repr, tape.fingerprint]
    try:
        Tape(key=KEY[:5])
    except InvalidSetting as error:
        shown.append("".join(traceback.format_exception(error)))
    assert "Tape(<key hidden>)" in shown
    for argument in ({"seed": KEY}, {"seed": KEY.hex()}, {"key": KEY.hex()}):
        with pytest.raises(InvalidSetting) as caught:
            Tape(**argument)
        shown.append(str(caught.value))
    with pytest.raises(TypeError):
        Tape(KEY)  # a key in the place of a seed
    assert tape.fingerprint not in KEY.hex()
    for text in shown:
        assert KEY.hex() not in text
        assert repr(KEY)[2:10] not in text
        assert repr(KEY[:5])[2:-1] not in text


def test_fingerprints_tell_tapes_apart():
    tapes = [Tape(seed=1), Tape(seed=2), Tape(key=KEY), NumpyTape(seed=1), Tape()]
    assert len({tape.fingerprint for tape in tapes}) == len(tapes)
    assert Tape(seed=1).fingerprint == Tape(seed=1).fingerprint


@pytest.mark.parametrize("make", [lambda: Tape(key=KEY), lambda: NumpyTape(seed=5)])
def test_tapes_travel_to_other_processes(make):
    tape = make()
    for again in (pickle.loads(pickle.dumps(tape)), copy.deepcopy(tape)):
        assert draw(again, (1, 2, b"c", 0)) == draw(tape, (1, 2, b"c", 0))


@pytest.mark.parametrize(
    "arguments",
    [
        {"key": b"short"},
        {"key": "x" * 32},
        {"key": bytearray(32)},
        {"seed": -1},
        {"seed": 0.5},
        {"seed": "7"},
        {"seed": 1, "key": KEY},
        {"seed": 2**256},
        {"seed": 10**5000},
        {"seed": True},
    ],
)
def test_bad_seeds_and_keys_are_refused(arguments):
    with pytest.raises(InvalidSetting):
        Tape(**arguments)


@pytest.mark.parametrize("make", [Tape, NumpyTape])
@pytest.mark.parametrize("bad", [-1, 2**64, 0.5, "1", None])
def test_places_that_are_not_on_the_tape_are_refused(make, bad):
    tape = make(seed=1)
    for context in (b"", b"x"):
        with pytest.raises(InvalidSetting, match="whole numbers from 0 to"):
            tape.draw(LAWS, ladder=bad, question=1, context=context)
        with pytest.raises(InvalidSetting, match="whole numbers from 0 to"):
            tape.draw(LAWS, ladder=1, question=bad, context=context)
    for where in ({"ladder": bad, "first": 1}, {"ladder": 1, "first": bad}):
        if isinstance(bad, int):
            with pytest.raises(InvalidSetting, match="whole numbers from 0 to"):
                tape.draw_many(LAWS, **where, count=1)


def test_large_addresses_do_not_meet():
    tape = NumpyTape(seed=1)
    high = tape.draw(LAWS, ladder=2**32, question=9, context=b"x")
    assert high != tape.draw(LAWS, ladder=0, question=9 * 2**32, context=b"x")
    assert high != tape.draw(LAWS, ladder=1, question=9, context=b"x")
