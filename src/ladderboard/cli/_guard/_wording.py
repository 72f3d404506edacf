"""Certificates, losses and mechanisms as text for a terminal."""

from typing import TYPE_CHECKING, Any

from ladderboard._formatting import (
    format_confidence,
    format_promise,
    printable,
    round_down,
    round_up,
)
from ladderboard.bounds import AS_PRINTED, NO_THEOREM
from ladderboard.cli._output import wrap_lines
from ladderboard.losses import display_risk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ladderboard.bounds import Certificate

_BEST_RISK = "the true loss of the best model"


def format_interval(bound: "Certificate") -> str:
    """Return the interval as text, rounded outwards so that it still holds."""
    if bound.theorem == NO_THEOREM:
        return "no guarantee"
    return f"[{round_down(bound.low)}, {round_up(bound.high)}]"


def describe_bound(
    bound: "Certificate",
    shown: "Mapping[str, Any] | None" = None,
    released: float | None = None,
) -> str:
    """Return what a certificate guarantees, in a sentence or two.

    With ``shown``, in the metric, if it is known what was ``released``; otherwise about a loss.
    """
    if bound.theorem == NO_THEOREM:
        return f"No guarantee: {_BEST_RISK} may be anything. {_first_assumption(bound)}"
    sure = f"With probability at least {format_confidence(bound.beta)}"
    if bound.theorem == AS_PRINTED:
        sure = f"Except with probability of a constant times {bound.beta:g}"
    if shown is not None and (released is not None or not bound.differences):
        low, high = _metric_ends(bound, shown, released or 0.0)
        name = printable(shown["title"])
        if is_too_wide(bound, shown, released):
            return (
                f"What is proved about the true {name} is too wide to be of use with so few "
                "examples; --json has it."
            )
        interval = f"[{round_down(low)}, {round_up(high)}]"
        text = f"{sure}, the true {name} of the best model lies in {interval}."
        return text if released is None else f"{text} {_metric_promise(bound, shown, released)}"
    if bound.differences:
        text = (
            f"{sure}, {_BEST_RISK} less the released value lies in {format_interval(bound)}: "
            f"the error is at most {round_up(bound.error or 0)}."
        )
    else:
        text = f"{sure}, {_BEST_RISK} lies in {format_interval(bound)}."
    return f"{text} {bound.promise}"


def is_too_wide(
    bound: "Certificate", shown: "Mapping[str, Any] | None", released: float | None
) -> bool:
    """Return whether an interval says next to nothing in a metric without an upper limit.

    Such as an RMSE that may be 0, or more than twice the released one.
    """
    if shown is None or released is None or shown["as"] not in {"scaled", "root"}:
        return False
    low, high = _metric_ends(bound, shown, released)
    return low <= 0 and high > 2 * display_risk(shown["as"], released, shown["unit"])


def _metric_ends(
    bound: "Certificate", shown: "Mapping[str, Any]", released: float
) -> tuple[float, float]:
    """Return the interval of a certificate in a metric."""
    low, high = sorted(_displayed_ends(bound, shown, released))
    return low, high


def _displayed_ends(
    bound: "Certificate", shown: "Mapping[str, Any]", released: float
) -> tuple[float, float]:
    """Return the best and the worst end of a certificate in a metric."""
    centre = released if bound.differences else 0.0
    (smallest, largest), form, unit = bound.span, shown["as"], shown["unit"]
    ends = max(centre + bound.low, smallest), min(centre + bound.high, largest)
    return display_risk(form, ends[0], unit), display_risk(form, ends[1], unit)


def _metric_promise(bound: "Certificate", shown: "Mapping[str, Any]", released: float) -> str:
    """Return what a certificate says of the released value, in a metric."""
    value = display_risk(shown["as"], released, shown["unit"])
    best, worst = (abs(end - value) for end in _displayed_ends(bound, shown, released))
    return format_promise(
        worst if bound.overfitting else bound.overfitting, best if bound.hidden else bound.hidden
    )


def _first_assumption(bound: "Certificate") -> str:
    return bound.assumptions[0] if bound.assumptions else ""


def describe_assumptions(bound: "Certificate") -> list[str]:
    """Return what a certificate assumes: in a sentence, or as a list if it is not proven here."""
    if bound.theorem not in {NO_THEOREM, AS_PRINTED}:
        return wrap_lines(
            "It assumes that rows are independent, and that models see the labels only through "
            "these answers; --json has all assumptions."
        )
    assumptions = bound.assumptions if bound.theorem != NO_THEOREM else bound.assumptions[1:]
    if not assumptions:
        return []
    bullets = [line for text in assumptions for line in wrap_lines(text, indent="  ", first="- ")]
    theorem = wrap_lines(f"Theorem: {bound.theorem}.", indent="  ", first="")
    return ["Assumptions:", *bullets, *theorem]


def describe_settings(kind: str, settings: "Mapping[str, Any]") -> str:
    """Return a loss or a mechanism as a phrase, from its own description.

    >>> describe_settings("loss", {"loss": "brier", "classes": ["no", "yes"]})
    'brier (classes no, yes)'
    """
    parts = [
        f"{printable(name).replace('_', ' ')} {_format_value(value)}"
        for name, value in settings.items()
        if name != kind and value is not None
    ]
    return printable(settings[kind]) + (f" ({'; '.join(parts)})" if parts else "")


def format_values(values: "Sequence[Any]") -> str:
    """Return the first ten values as text, and how many there are.

    >>> format_values(["cat", 1.0])
    'cat, 1'
    """
    first = ", ".join(map(_format_value, values[:10]))
    return f"{first}, ... ({len(values)} in all)" if len(values) > 10 else first


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return format_values(value)
    return f"{value:g}" if isinstance(value, float) else printable(value)
