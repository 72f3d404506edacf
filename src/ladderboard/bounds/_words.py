"""The sentences that a certificate must carry."""

from __future__ import annotations

from ladderboard._formatting import format_confidence
from ladderboard.mechanisms import (
    BootstrapLadder,
    Exact,
    Mechanism,
    Noisy,
    ParameterFreeLadder,
    ShakyLadder,
    Thresholdout,
)

__all__ = ["CORRECTED", "PAPER", "UNPROMISED", "sentences"]

_ZERO_ONE = (
    "has a finite transcript under zero-one loss only, without weights and groups and with risks "
    "in [0, 1]."
)
UNPROMISED: dict[type[Mechanism], str] = {
    Noisy: "Noisy says an unrounded number about every model; its transcripts cannot be counted.",
    Thresholdout: "Thresholdout says unrounded numbers; its transcripts cannot be counted.",
    BootstrapLadder: (
        "BootstrapLadder resamples the holdout; nothing is proved about its releases."
    ),
    ShakyLadder: (
        "A ShakyLadder without a grid says unrounded numbers; give it a grid, or take "
        "ShakyLadder.from_paper where the paper's theorem speaks."
    ),
    Exact: f"Exact {_ZERO_ONE}",
    ParameterFreeLadder: f"ParameterFreeLadder {_ZERO_ONE}",
}

PAPER = (
    "This is the paper's bound with the constants of its proof, taken as printed: its failure "
    "probability is beta only up to a constant, and the privacy lemma it rests on does not follow "
    "with the stated noise (the documentation's errata, 5)."
)
_WHEN = (
    "With probability at least {} over the holdout and the tape, this holds at every time at "
    "once, for certificates of this form on this board."
)
_SAMPLE = (
    "The labels are an independent sample, and models see the holdout only through what the "
    "mechanism says: no other output, and nothing that the owner does in public, depends on the "
    "labels."
)
_INPUTS = (
    "If the test inputs are public, R_D is the input-conditional risk, the mean over the holdout's "
    "inputs of the expected loss, with labels independent given inputs; if labels are a function "
    "of the inputs this says nothing about new data."
)
CORRECTED = (
    "Labels were corrected: each new label depends on its own example, its old label and what is "
    "public, and on no other label."
)


def sentences(
    beta: float | None, *, ladders: int, private: bool, noisy: bool, closed: bool, rounds: bool
) -> tuple[str, ...]:
    """Return what must hold for a certificate; beta is None where it is not exactly kept."""
    said = [] if beta is None else [_WHEN.format(format_confidence(beta))]
    said += [_SAMPLE, _INPUTS]
    if rounds:
        said.append("That rounds, and not only their number, would be given was fixed beforehand.")
    if noisy:
        said.append("Noise is drawn from one tape, independent of the data, and never redrawn.")
    if private:
        said.append(
            f"No team sees anything of the releases of another, the board's best included; the "
            f"failure probability is shared among {ladders} teams, and this is about one of them."
        )
    elif ladders > 1:
        said.append(
            f"All visible changes on all {ladders} ladders count together, and questions are "
            "numbered over all ladders: teams may see each other's releases, and may collude."
        )
    if closed:
        said.append(
            "The exact risk on the holdout was used. It depends on the labels, so this may be "
            "published only when no question will follow."
        )
    return tuple(said)
