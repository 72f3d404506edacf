"""Certificates, losses and mechanisms in the words of a terminal."""

from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_confidence, printable, round_down, round_up
from ladderboard.bounds import AS_PRINTED, NO_THEOREM
from ladderboard.cli._output import wrap_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ladderboard.bounds import Certificate

_BEST_RISK = "the true risk of the best model asked"


def format_interval(bound: "Certificate") -> str:
    """Return the ends, rounded outwards, so that what is printed is still true."""
    if bound.theorem == NO_THEOREM:
        return "nothing is promised"
    return f"[{round_down(bound.low)}, {round_up(bound.high)}]"


def describe_bound(bound: "Certificate") -> str:
    """Return what a certificate promises, in a sentence or two."""
    if bound.theorem == NO_THEOREM:
        return f"Nothing is promised: {_BEST_RISK} may be anything. {_first_assumption(bound)}"
    sure = f"With probability at least {format_confidence(bound.beta)}"
    if bound.theorem == AS_PRINTED:
        sure = f"But for a probability of a constant times {bound.beta:g}"
    if bound.differences:
        said = (
            f"{sure}, {_BEST_RISK} less the released value lies in {format_interval(bound)}: "
            f"the error is at most {round_up(bound.error or 0)}."
        )
    else:
        width = f"half width {round_up(bound.half_width)}"
        said = f"{sure}, {_BEST_RISK} lies in {format_interval(bound)} ({width})."
    return f"{said} That is no more than was known beforehand." if bound.vacuous else said


def _first_assumption(bound: "Certificate") -> str:
    return bound.assumptions[0] if bound.assumptions else ""


def describe_assumptions(bound: "Certificate") -> list[str]:
    """Return on which conditions that holds, one a line or several."""
    told = bound.assumptions if bound.theorem != NO_THEOREM else bound.assumptions[1:]
    if not told:
        return []
    bullets = [line for each in told for line in wrap_lines(each, indent="  ", first="- ")]
    theorem = wrap_lines(f"Theorem: {bound.theorem}.", indent="  ", first="")
    return ["What that rests on:", *bullets, *theorem]


def describe_settings(what: str, settings: "Mapping[str, Any]") -> str:
    """Return a loss or a mechanism as a phrase, from its own description.

    >>> describe_settings("loss", {"loss": "brier", "classes": ["no", "yes"]})
    'brier (classes no, yes)'
    """
    told = [
        f"{printable(name).replace('_', ' ')} {_format_value(value)}"
        for name, value in settings.items()
        if name != what and value is not None
    ]
    return printable(settings[what]) + (f" ({'; '.join(told)})" if told else "")


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        some = ", ".join(map(_format_value, value[:10]))
        return f"{some}, ... ({len(value)} in all)" if len(value) > 10 else some
    return f"{value:g}" if isinstance(value, float) else printable(value)
