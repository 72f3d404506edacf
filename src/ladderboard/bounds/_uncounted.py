"""Where transcripts cannot be counted: the paper's bound where it speaks, or nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ladderboard.bounds._certificate import AS_PRINTED, NONE, Certificate
from ladderboard.bounds._paper import paper
from ladderboard.bounds._words import PAPER, UNPROMISED, sentences
from ladderboard.mechanisms import PaperSettings, ShakyLadder

if TYPE_CHECKING:
    from ladderboard.bounds._paper import PaperBound
    from ladderboard.mechanisms import Mechanism, Setup

__all__ = ["nothing", "uncounted"]

_UNKNOWN = "Nothing is known about what this mechanism can say; its transcripts are not counted."


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
