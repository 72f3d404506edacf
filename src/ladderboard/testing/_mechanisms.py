"""The conformance suite of mechanisms."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from ladderboard.errors import InvalidInput, InvalidState, SessionClosed
from ladderboard.mechanisms import (
    MECHANISMS,
    Mechanism,
    Observation,
    Release,
    Session,
    Setup,
    mechanism,
)
from ladderboard.tape import NumpyTape, Tape
from ladderboard.testing._assertions import (
    numpy_global_state,
    pickled_copy,
    require,
    require_instance,
    require_refusal,
)


def check_mechanism(subject: Mechanism, *, n: int = 50, questions: int = 30, seed: int = 0) -> None:
    """Check that ``subject`` meets the requirements of a mechanism.

    Asks ``questions`` random questions on ``n`` examples, so it needs a budget for as many. Answers
    must depend on the questions and the tape only, and be equal one by one and all at once; the
    state must survive JSON at any point; a step must be pure; and a refusal must change nothing.

    Examples
    --------
    >>> import ladderboard as lb
    >>> check_mechanism(lb.Ladder(step=0.05))
    """
    require_instance(subject, Mechanism, "mechanism")
    _check_identity(subject)
    rng = np.random.default_rng(seed)
    asked_questions = [_question(subject, n, rng) for _ in range(questions)]
    for tape in (Tape(seed=seed), NumpyTape(seed=seed)):
        releases = _play(subject.start(n=n, tape=tape), asked_questions)
        _check_releases(subject, releases)
        again = _play(subject.start(n=n, tape=pickled_copy(tape)), asked_questions)
        require(releases == again, "The same questions on the same tape must get the same answers.")
        _check_resume(subject, n, tape, asked_questions, releases)
        _check_bulk(subject, n, tape, asked_questions, releases)
    _check_step(subject, n, asked_questions)
    _check_refusals(subject, n, asked_questions)
    _check_close(subject, n, asked_questions)


def _question(subject: Mechanism, n: int, rng: np.random.Generator) -> dict[str, Any]:
    losses = (rng.random(n) < rng.random()).astype(float)
    question: dict[str, Any] = (
        {"losses": losses} if subject.needs != "risk" else {"risk": float(losses.mean())}
    )
    if subject.needs_training:
        question["training"] = float(rng.random())
    return question


def _play(session: Session, questions: list[dict[str, Any]]) -> list[Release]:
    return [session.ask(**question) for question in questions]


def _check_releases(subject: Mechanism, releases: list[Release]) -> None:
    for number, release in enumerate(releases, start=1):
        require(release.question == number, "Questions must be counted from 1.")
        require(type(release.improved) is bool, "improved must be True or False.")
        for number_or_none in (release.value, release.score):
            require(
                number_or_none is None
                or (type(number_or_none) is float and math.isfinite(number_or_none)),
                f"{subject.name} must release finite floats, or None.",
            )


def _check_resume(
    subject: Mechanism, n: int, tape: Tape, questions: list[dict[str, Any]], releases: list[Release]
) -> None:
    session = subject.start(n=n, tape=tape)
    for count in range(len(questions) + 1):
        text = json.dumps(session.state, allow_nan=False)
        resumed = subject.resume(json.loads(text), tape=pickled_copy(tape))
        require(
            json.dumps(resumed.state, allow_nan=False) == text,
            "A state must survive JSON bit for bit.",
        )
        require(
            _play(resumed, questions[count:]) == releases[count:],
            f"A session resumed after {count} questions must have the same future.",
        )
        if count < len(questions):
            session.ask(**questions[count])


def _check_bulk(
    subject: Mechanism, n: int, tape: Tape, questions: list[dict[str, Any]], releases: list[Release]
) -> None:
    if subject.needs != "risk":
        return
    half = len(questions) // 2
    session = subject.start(n=n, tape=tape)
    bulk: list[Release] = []
    for part in (questions[:half], [], questions[half:]):
        training = [question["training"] for question in part] if subject.needs_training else None
        bulk += session.ask_many([question["risk"] for question in part], training=training)
    require(bulk == releases, "Asking many at once must be the same as asking one by one.")
    one_by_one = subject.start(n=n, tape=tape)
    _play(one_by_one, questions)
    require(session.state == one_by_one.state, "Both ways must lead to the same state.")


def _check_step(subject: Mechanism, n: int, questions: list[dict[str, Any]]) -> None:
    """Check the step without a session: it must be pure and not change its arguments."""
    setup = Setup(n, 0.0, 1.0)
    tape = Tape(seed=7)
    state = subject.begin(setup, tape.draw(subject.laws, ladder=0, question=0))
    global_state = repr(numpy_global_state())
    for number, question in enumerate(questions, start=1):
        draws = tape.draw(subject.laws, ladder=0, question=number)
        losses = question.get("losses")
        risk = question["risk"] if losses is None else float(np.mean(losses))
        observation = Observation(
            risk, None if losses is None else losses.copy(), question.get("training")
        )
        before = json.dumps(subject.dump_state(state))
        first = subject.advance(setup, state, observation, draws)
        again = subject.advance(setup, state, observation, draws)
        require(
            json.dumps(subject.dump_state(first.state))
            == json.dumps(subject.dump_state(again.state))
            and first[1:] == again[1:],
            "A step taken twice from one state must have the same result.",
        )
        require(
            json.dumps(subject.dump_state(state)) == before,
            "A step must not change the state given.",
        )
        require(
            observation.losses is None or np.array_equal(question["losses"], observation.losses),
            "A step must not change the losses given.",
        )
        state = first.state
    require(
        repr(numpy_global_state()) == global_state,
        "A mechanism must not touch NumPy's global random state.",
    )


def _check_identity(subject: Mechanism) -> None:
    require(hash(subject) == hash(subject), "A mechanism must be hashable.")
    with require_refusal(
        AttributeError, "A mechanism must be frozen: write @dataclass(frozen=True) above its class."
    ):
        subject.name = "another"  # type: ignore[misc]
    description = json.loads(json.dumps(subject.describe(), allow_nan=False))
    require(description == subject.describe(), "A description must survive JSON.")
    if subject.name in MECHANISMS:
        require(
            type(subject) is MECHANISMS[subject.name],
            f"A mechanism of your own needs a name of its own; {subject.name!r} is taken.",
        )
        require(
            mechanism(description) == subject,
            "A mechanism must be reconstructible from describe().",
        )


def _check_refusals(subject: Mechanism, n: int, questions: list[dict[str, Any]]) -> None:
    session = subject.start(n=n, tape=Tape(seed=4))
    session.ask(**questions[0])
    before = json.dumps(session.state)
    extra = {
        key: value for key, value in questions[0].items() if key in {"training", "standard_error"}
    }
    bad: list[dict[str, Any]] = [{}, {"losses": np.zeros(n + 1)}, {"losses": np.full(n, 1.5)}]
    bad += [{"losses": np.array([math.nan] + [0.0] * (n - 1))}, {"losses": np.zeros((n, 1))}]
    bad += [{"risk": risk} for risk in (-0.1, 1.1, math.nan, math.inf, "0.3", None, True)]
    bad += [{"risk": 0.5, "losses": np.zeros(n)}]
    for question in bad:
        with require_refusal(
            InvalidInput, f"{subject.name} must refuse {sorted(question)} of this kind."
        ):
            session.ask(**question, **extra)
        require(json.dumps(session.state) == before, "A refusal must not change the state.")
    damaged = {**session.state, "mechanism": {"mechanism": "another"}}
    with require_refusal(InvalidState, "The state of another mechanism must be refused."):
        subject.resume(damaged, tape=Tape(seed=4))
    if subject.laws:
        with require_refusal(InvalidState, "Another tape must be refused."):
            subject.resume(session.state, tape=Tape(seed=5))


def _check_close(subject: Mechanism, n: int, questions: list[dict[str, Any]]) -> None:
    session = subject.start(n=n, tape=Tape(seed=6))
    _play(session, questions)
    last = session.close()
    require(last is not None and math.isfinite(last), "Closing must return the last estimate.")
    require(session.value == last, "After closing, value must be what close returned.")
    with require_refusal(SessionClosed, "A closed session must not answer."):
        session.ask(**questions[0])
    again = subject.resume(json.loads(json.dumps(session.state)), tape=Tape(seed=6))
    require(again.closed and again.value == last, "A closed session must stay closed.")
