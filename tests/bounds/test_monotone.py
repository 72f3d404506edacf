"""More questions never shrink a certificate; more examples never widen it."""

from hypothesis import given, settings
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.bounds import certificate
from ladderboard.mechanisms import Setup

ROUNDING = 1e-9
cells = st.sampled_from([0.02, 0.05, 0.1, 0.03])
steps = st.sampled_from([0.01, 0.02, 0.05, 0.13])
noises = st.sampled_from([0.0, 0.01, 0.05])
mechanisms = st.one_of(
    st.builds(lb.Ladder, step=steps, grid=st.one_of(st.none(), cells)),
    st.builds(lb.OneBit, step=steps, grid=cells),
    st.builds(
        lb.ShakyLadder,
        step=steps,
        compare_noise=noises,
        release_noise=noises,
        grid=cells,
        law=st.sampled_from(["gaussian", "laplace"]),
    ),
    st.builds(lb.Rounded, digits=st.integers(0, 3)),
    st.just(lb.ParameterFreeLadder()),
    st.just(lb.Exact()),
)


@st.composite
def boards(draw):
    """Draw a mechanism and what was seen of it, in one of the forms a certificate takes."""
    mechanism = draw(mechanisms)
    n = draw(st.integers(2, 400))
    transcript = mechanism.transcript(Setup(n, 0.0, 1.0))
    max_changes = min(transcript.values.max_changes, 12)
    asked = draw(st.integers(1, 60))
    rounds = draw(st.sets(st.integers(1, asked), max_size=max_changes).map(sorted))
    form = draw(st.sampled_from(["count", "rounds", "none", "split counts", "split rounds"]))
    ladders = draw(st.integers(1, 5))
    owners = [draw(st.integers(0, ladders - 1)) for _ in rounds]
    split = {
        owner: [at for at, o in zip(rounds, owners, strict=True) if o == owner] for owner in owners
    }
    changes = {
        "count": len(rounds),
        "rounds": rounds,
        "none": None,
        "split counts": {name: len(rounds_of) for name, rounds_of in split.items()},
        "split rounds": split,
    }[form]
    arguments = {"changes": changes, "mechanism": mechanism, "asked": asked, "ladders": ladders}
    if draw(st.booleans()) and not isinstance(mechanism, lb.ParameterFreeLadder | lb.Exact):
        arguments["released"] = (
            transcript.lowest * transcript.cell if transcript.every_question or rounds else 1.0
        )
    elif draw(st.booleans()):
        arguments["risk"] = draw(st.floats(0, 1))
    return arguments, n, asked


def inside(small, large):
    assert large.low <= small.low + ROUNDING
    assert small.high <= large.high + ROUNDING


@settings(max_examples=300)
@given(boards(), st.integers(0, 100), st.integers(1, 1000), st.floats(1e-6, 0.99))
def test_more_questions_never_shrink_a_certificate(board, spare, more, beta):
    arguments, n, asked = board
    few = certificate(n, asked + spare, beta=beta, **arguments)
    many = certificate(n, asked + spare + more, beta=beta, **arguments)
    inside(few, many)


@settings(max_examples=300)
@given(boards(), st.integers(1, 100), st.floats(1e-6, 0.99))
def test_going_on_in_silence_never_shrinks_an_anytime_certificate(board, more, beta):
    arguments, n, asked = board
    before = certificate(n, None, beta=beta, **arguments)
    arguments["asked"] = asked + more
    inside(before, certificate(n, None, beta=beta, **arguments))


@settings(max_examples=300)
@given(boards(), st.integers(0, 100), st.integers(1, 1000), st.floats(1e-6, 0.99), st.booleans())
def test_more_examples_never_widen_a_certificate(board, spare, more, beta, anytime):
    arguments, n, asked = board
    questions = None if anytime else asked + spare
    few = certificate(n, questions, beta=beta, **arguments)
    many = certificate(n + more, questions, beta=beta, **arguments)
    inside(many, few)


@settings(max_examples=100)
@given(boards(), st.floats(1e-6, 0.4), st.floats(1.01, 2))
def test_more_confidence_costs_more(board, beta, factor):
    arguments, n, asked = board
    sure = certificate(n, asked, beta=beta, **arguments)
    inside(certificate(n, asked, beta=beta * factor, **arguments), sure)


@settings(max_examples=100)
@given(boards(), st.integers(2, 20))
def test_private_teams_share_the_failure_probability(board, teams):
    arguments, n, asked = board
    if isinstance(arguments["changes"], dict):
        arguments["changes"] = len(arguments["changes"])
    if arguments.get("released"):
        del arguments["released"]
    alone = certificate(n, asked, **{**arguments, "ladders": 1})
    one = certificate(n, asked, **{**arguments, "ladders": teams, "private": True})
    shared = certificate(n, asked, beta=0.05 / teams, **{**arguments, "ladders": 1})
    inside(alone, one)
    assert (one.low, one.high, one.nats) == (shared.low, shared.high, shared.nats)
