"""Where transcripts cannot be counted: the paper's bound where it speaks, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.bounds._certificate import Certificate
from ladderboard.bounds._paper import paper
from ladderboard.bounds._words import AS_PRINTED, UNPROMISED, sentences
from ladderboard.mechanisms import PaperSettings, ShakyLadder

if TYPE_CHECKING:
    from ladderboard.bounds._paper import PaperBound
    from ladderboard.mechanisms import Mechanism, Setup

__all__ = ["uncounted"]

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
    """Return the paper's bound for a ladder made by ``from_paper``, or the whole range."""
    differences = released is None and risk is None
    width = setup.high - setup.low
    whole = (-width, width) if differences else (setup.low, setup.high)
    found = _papers(mechanism, setup, questions, beta) if ladders == 1 else None
    if found is None:
        why = UNPROMISED.get(type(mechanism), _UNKNOWN)
        return Certificate(
            *whole,
            generalisation=(width, width),
            sample=(-width, width),
            beta=beta,
            nats=None,
            differences=differences,
            span=(setup.low, setup.high),
            theorem="none",
            assumptions=(why,),
        )
    reach = found.transfer
    apart = 0.0 if risk is not None else found.bound - reach
    centre = risk if risk is not None else released if released is not None else 0.0
    low, high = (
        min(max(end, whole[0]), whole[1])
        for end in (centre - reach - apart, centre + reach + apart)
    )
    return Certificate(
        low,
        high,
        generalisation=(reach, reach),
        sample=(-apart, apart),
        beta=beta,
        nats=None,
        differences=differences,
        span=(setup.low, setup.high),
        theorem="the paper's, as printed",
        assumptions=(
            AS_PRINTED,
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


def _papers(
    mechanism: Mechanism, setup: Setup, questions: int | None, beta: float
) -> PaperBound | None:
    """Return the paper's bound if the mechanism is Fig. 1 at Eq. (2) for this n, or better."""
    if type(mechanism) is not ShakyLadder or not isinstance(mechanism.origin, PaperSettings):
        return None
    origin = mechanism.origin
    found = paper(origin.n, origin.questions, origin.beta)
    scale = found.settings.noise_scale
    made = ShakyLadder(found.settings.step, scale, scale, law="laplace")
    fits = (
        mechanism == made
        and origin.n == setup.n
        and questions is not None
        and questions <= origin.questions
        and beta >= origin.beta
        and (setup.low, setup.high) == (0, 1)
    )
    return found if fits and found.holds else None
