"""From what is public about a board to a certificate.

Proofs: docs/explanation/certificates.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.bounds._certificate import (
    AS_PRINTED,
    NONE,
    PAPER,
    UNPROMISED,
    Certificate,
    sentences,
)
from ladderboard.bounds._counting import Weights
from ladderboard.bounds._kl import kl_lower, kl_upper
from ladderboard.bounds._noise import UNIT
from ladderboard.bounds._paper import paper
from ladderboard.bounds._transcript import History, Transcript, transcript_of
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import WIDEST, Mechanism, PaperSettings, Setup, ShakyLadder

if TYPE_CHECKING:
    from ladderboard.bounds._paper import PaperBound

_UNKNOWN = "Nothing is known about what this mechanism can say; its transcripts are not counted."
_LARGEST = 10**15
_LEAST_BETA = 1e-100
_LAST = 2.0**-50  # a few last bits of a double
_NEAR = 1e-6  # how far, in cells, a value may be from the one that is meant


def certificate(  # noqa: PLR0917 - the public contract
    n: int,
    questions: int | None,
    changes: Any,
    mechanism: Mechanism,
    beta: float = 0.05,
    released: float | None = None,
    *,
    asked: int | None = None,
    ladders: int | None = 1,
    opened: int | None = None,
    amendable: bool = False,
    private: bool = False,
    risk: float | None = None,
    risk_range: tuple[float, float] = (0, 1),
    zero_one: bool = True,
) -> Certificate:
    """Return an interval for the best true risk so far, from what is public.

    Parameters
    ----------
    n
        Examples in the holdout.
    questions
        How many questions are allowed; None if that is not known beforehand (then give ``asked``).
    changes
        How often the board was seen to change; or the numbers of the questions at which it did; or
        None, for the worst case before the data. With several ladders also a mapping from each
        ladder to either, with questions numbered over all ladders.
    mechanism
        What answered.
    beta
        The probability with which the certificate may be false.
    released
        The value that stands: the tighter kl form, and an interval of risks.
    asked
        How many questions were asked so far; all of them if left out.
    ladders
        How many ladders (teams) there are; None if that is not known beforehand (then give
        ``opened``).
    opened
        How many ladders were started so far. Where ``ladders`` is given too, more than those count
        for answers that were lost when an old copy was put back.
    amendable
        Whether ``questions`` may be changed later: half of the weight then goes to any number of
        questions, and ``asked`` may be more than ``questions``, which is the number at the start.
    private
        Whether teams see nothing of each other's releases. Then everything else given is about one
        of them.
    risk
        The exact least risk on the holdout. It depends on the labels: only at close.
    risk_range
        The interval in which losses and risks lie.
    zero_one
        Whether every loss is 0 or 1 and every example counts the same, without weights and groups.
        ``Exact`` and ``ParameterFreeLadder`` promise nothing otherwise; no other mechanism asks.

    Examples
    --------
    >>> import ladderboard as lb
    >>> ladder = lb.Ladder(step=0.01, grid=0.005)
    >>> found = certificate(n=10_000, questions=1_000, changes=5, mechanism=ladder)
    >>> round(found.half_width, 4)
    0.0627
    >>> found = certificate(10_000, 1_000, [1, 3, 10, 30, 100], ladder, released=0.05)
    >>> print(f"[{found.low:.3f}, {found.high:.3f}]")
    [0.023, 0.078]
    """
    setup = Setup(read_count("n", n), *_settings.interval("risk_range", risk_range, within=WIDEST))
    beta = read_beta(beta)
    amendable = _read_truth("amendable", amendable)
    questions, asked = _read_asked(questions, asked, amendable=amendable)
    ladders, weight = _read_ladders(ladders, opened, private=private)
    private = _read_truth("private", private)
    if not isinstance(mechanism, Mechanism):
        raise InvalidSetting(
            "mechanism must be a Mechanism, as in lb.Ladder(step=0.01); "
            f"got {_settings.safe_repr(mechanism)}."
        )
    mechanism.check(setup)
    history = History.read(changes, asked)
    transcript = transcript_of(mechanism, setup, zero_one=zero_one)
    # A release may lie outside the range of risks: half a cell on a grid, further with noise.
    if released is not None:
        released = _settings.number("released", released)
    if risk is not None:
        risk = _settings.number("risk", risk, at_least=setup.low, at_most=setup.high)
    if transcript is None:
        return uncounted(
            mechanism,
            setup,
            None if questions is None or asked > questions else questions,
            beta * weight,
            ladders=ladders,
            released=released,
            risk=risk,
        )
    seen_by_all = 1 if private else ladders
    _check_ladders(history, seen_by_all, private=private)
    _check(transcript, history, setup, seen_by_all, released)
    _check_close(transcript, setup, released, risk)
    # Where teams are private each has a certificate of its own, and beta is shared among them.
    share = beta * weight / (ladders if private else 1)
    noisy = transcript.sample.noisy
    if noisy:
        share /= 2  # half to the noise, half to the counting
    nats = Weights(questions, share, seen_by_all, amendable).nats(transcript, history)
    sample = transcript.sample.ends(
        asked if questions is None else questions,
        share,
        ladders=seen_by_all,
        anytime=questions is None,
        asked=asked if amendable else None,
    )
    differences = released is None and risk is None
    known = transcript.gaps(setup) if differences else (setup.low, setup.high)
    low, high, parts = _interval(setup, nats, sample, released, risk)
    return Certificate(
        low=max(low, known[0]),
        high=min(high, known[1]),
        generalisation=parts,
        sample=sample,
        beta=beta,
        nats=nats,
        differences=differences,
        span=(setup.low, setup.high),
        known=known,
        theorem=_theorem(
            transcript, history, anytime=questions is None or amendable, kl=not differences
        ),
        assumptions=(
            *sentences(
                beta,
                ladders=ladders,
                private=private,
                noisy=noisy,
                closed=risk is not None,
                rounds=history.rounds is not None and not transcript.every_question,
            ),
            *transcript.assumptions,
        ),
    )


def read_count(name: str, given: Any) -> int:
    """Return a number of examples, questions or ladders."""
    return _settings.integer(name, given, at_least=1, at_most=_LARGEST)


def read_beta(given: Any) -> float:
    """Return a failure probability."""
    return _settings.number("beta", given, at_least=_LEAST_BETA, below=1)


def _read_truth(name: str, given: Any) -> bool:
    if not isinstance(given, bool | np.bool_):
        raise InvalidSetting(f"{name} must be True or False; got {_settings.safe_repr(given)}.")
    return bool(given)


def _read_asked(questions: Any, asked: Any, *, amendable: bool) -> tuple[int | None, int]:
    if questions is None:
        if amendable:
            raise InvalidSetting("Where questions is None there is nothing to amend.")
        if asked is None:
            raise InvalidSetting(
                "Where questions is None, asked must say how many were asked; try asked=100."
            )
        return None, read_count("asked", asked)
    questions = read_count("questions", questions)
    if asked is None:
        return questions, questions
    if amendable:
        return questions, read_count("asked", asked)
    return questions, _settings.integer("asked", asked, at_least=1, at_most=questions)


def _read_ladders(ladders: Any, opened: Any, *, private: bool) -> tuple[int, float]:
    """Return how many ladders are counted, and the share of beta for just so many."""
    if ladders is not None:
        ladders = read_count("ladders", ladders)
        if opened is None:
            return ladders, 1.0
    if private:
        raise InvalidSetting("With private=True ladders must be known beforehand.")
    if ladders is not None:
        opened = max(ladders, read_count("opened", opened))
        return opened, _share(opened - ladders)
    if opened is None:
        raise InvalidSetting(
            "Where ladders is None, opened must say how many were started; try opened=2."
        )
    opened = read_count("opened", opened)
    return opened, _share(opened - 1)


def _share(more: int) -> float:
    """Return the share of beta for just so many ladders more than were known beforehand."""
    return 0.9 if more == 0 else 0.1 / (more * (more + 1))


def _check_ladders(history: History, ladders: int, *, private: bool) -> None:
    """Refuse more ladders than there are."""
    given = 0 if history.counts is None else len(history.counts)
    if given > 1 and private:
        raise InvalidSetting(
            "With private=True changes is about one team: give its own number of changes, or its "
            f"rounds; got a mapping of {given} teams."
        )
    if given > ladders:
        raise InvalidSetting(
            f"changes names {given} ladders and there are {ladders}; give ladders={given}."
        )


def _check_close(
    transcript: Transcript, setup: Setup, released: float | None, risk: float | None
) -> None:
    """Refuse a risk and a release that cannot both be: without noise that is certain."""
    if released is None or risk is None or transcript.sample.noisy:
        return
    least, most = transcript.sample.ends(1, 0.5)  # without noise the same for all
    spare = _NEAR * transcript.cell + UNIT * (setup.high - setup.low)
    if not least - spare <= released - risk <= most + spare:
        raise InvalidSetting(
            f"released - risk must lie in [{least:.4g}, {most:.4g}] for this mechanism; got "
            f"released={_settings.safe_repr(released)} and a risk that does not fit it."
        )


def _check(
    transcript: Transcript,
    history: History,
    setup: Setup,
    ladders: int,
    released: float | None,
) -> None:
    """Refuse what this mechanism cannot have said."""
    if transcript.every_question:
        changes = None
    else:
        changes = history.count
        most = transcript.values.most
        parts = history.counts or ((history.count or 0,) if ladders == 1 else ())
        if any(part > most for part in parts) or (history.count or 0) > ladders * most:
            raise InvalidSetting(
                f"This mechanism can change at most {most} times on a ladder; "
                f"got {history.count} changes on {ladders}."
            )
    # On several ladders the changes of the one that stands lowest are not known.
    told = changes if ladders == 1 or not changes else min(changes, 1)
    if released is not None and not transcript.tells(released, setup.high, told):
        raise InvalidSetting(
            "released must be a value this mechanism can have said after so many changes: "
            f"a multiple of {transcript.cell:g}"
            + ("" if transcript.every_question else f", or {setup.high:g} before the first change")
            + f"; got {_settings.safe_repr(released)}."
        )


def _interval(
    setup: Setup,
    nats: float,
    sample: tuple[float, float],
    released: float | None,
    risk: float | None,
) -> tuple[float, float, tuple[float, float]]:
    """Return the interval and its generalisation part, in the form that what is given allows."""
    width = setup.high - setup.low
    rate = nats / setup.n
    if released is None and risk is None:
        reach = width * math.sqrt(rate / 2)  # Hoeffding, by Pinsker from the kl form
        return -sample[1] - reach, -sample[0] + reach, (reach, reach)
    if risk is not None:
        ends = (risk, risk)
    else:
        assert released is not None  # noqa: S101 - one of the two was given
        ends = (released - sample[1], released - sample[0])
    # Scaling to [0, 1] and back rounds, so ends are moved outwards; [0, 1] itself is not scaled.
    spare = 0.0 if (setup.low, width) == (0, 1) else _LAST * max(abs(setup.low), abs(setup.high))
    least, most = (
        min(max((end - setup.low) / width, 0.0), 1.0) for end in (ends[0] - spare, ends[1] + spare)
    )
    low, high = kl_lower(least, rate), kl_upper(most, rate)
    parts = (width * (least - low), width * (high - most))
    return setup.low + width * low - spare, setup.low + width * high + spare, parts


def _theorem(transcript: Transcript, history: History, *, anytime: bool, kl: bool) -> str:
    if transcript.every_question:
        prior = "every score counted"
    elif history.count is None:
        prior = "worst case over all numbers of changes"
    elif history.rounds is not None:
        prior = "uniform and record weights, mixed"
    else:
        prior = "uniform weights"
    time = ", any number of questions" if anytime else ""
    return f"counting transcripts ({prior}{time}; {'kl' if kl else 'Hoeffding'} form)"


def uncounted(
    mechanism: Mechanism,
    setup: Setup,
    questions: int | None,
    beta: float,
    *,
    ladders: int,
    released: float | None,
    risk: float | None,
) -> Certificate:
    """Return the paper's bound for a ladder made by ``from_paper``, or nothing."""
    differences = released is None and risk is None
    span = (setup.low, setup.high)
    width = setup.high - setup.low
    found, why = _papers(mechanism, setup, questions, beta, ladders)
    if found is None:
        return nothing(why, beta, span, differences=differences)
    reach = found.transfer
    apart = 0.0 if risk is not None else found.bound - reach
    centre = risk if risk is not None else released if released is not None else 0.0
    low, high = centre - reach - apart, centre + reach + apart
    if not differences:
        low, high = (min(max(end, setup.low), setup.high) for end in (low, high))
    return Certificate(
        low,
        high,
        generalisation=(reach, reach),
        sample=(-apart, apart),
        beta=beta,
        nats=None,
        differences=differences,
        span=span,
        # What would be known of a value within the range of risks; the release need not be.
        known=(-width, width) if differences else span,
        theorem=AS_PRINTED,
        assumptions=(
            PAPER,
            *sentences(
                None,
                ladders=1,
                private=False,
                noisy=True,
                closed=risk is not None,
                rounds=False,
            ),
        ),
    )


def nothing(
    why: str, beta: float, span: tuple[float, float] = (0.0, 1.0), *, differences: bool = True
) -> Certificate:
    """Return the certificate that promises nothing, and says why."""
    width = span[1] - span[0]
    # A release may be any number, so nothing at all is known about its difference from a risk.
    anything = (-math.inf, math.inf)
    whole = anything if differences else span
    return Certificate(
        *whole,
        generalisation=(width, width),
        sample=anything,
        beta=beta,
        nats=None,
        differences=differences,
        span=span,
        known=whole,
        theorem=NONE,
        assumptions=(why,),
    )


def _papers(
    mechanism: Mechanism, setup: Setup, questions: int | None, beta: float, ladders: int
) -> tuple[PaperBound | None, str]:
    """Return the paper's bound if the mechanism is Fig. 1 at Eq. (2) for this n, or why not."""
    why = UNPROMISED.get(type(mechanism), _UNKNOWN)
    if type(mechanism) is not ShakyLadder or not isinstance(mechanism.origin, PaperSettings):
        return None, why
    origin = mechanism.origin
    found = paper(origin.n, origin.questions, origin.beta)
    scale = found.settings.noise_scale
    if mechanism != ShakyLadder(found.settings.step, scale, scale, law="laplace"):
        return None, why
    asked = "an unknown number of" if questions is None else f"{questions}"
    fails = [
        sentence
        for fits, sentence in (
            (origin.n == setup.n, f"n is {setup.n} and not {origin.n}"),
            (
                questions is not None and questions <= origin.questions,
                f"{asked} questions are more than {origin.questions}",
            ),
            (beta >= origin.beta, f"beta is {beta:g}, below {origin.beta:g}"),
            (ladders == 1, f"there are {ladders} ladders, and it speaks of one"),
            ((setup.low, setup.high) == (0, 1), "risks do not lie in [0, 1]"),
            *((False, sentence) for sentence in found.conditions),
        )
        if not fits
    ]
    if fails:
        return None, (
            "The paper's theorem does not speak here, and without a grid transcripts cannot be "
            f"counted: {'; '.join(fails)}."
        )
    return found, ""
