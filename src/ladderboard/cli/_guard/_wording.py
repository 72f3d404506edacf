"""Certificates, losses and mechanisms as text for a terminal."""

from typing import TYPE_CHECKING, Any

from ladderboard._formatting import printable
from ladderboard.cli._output import wrap_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ladderboard.bounds import Certificate


def describe_assumptions(bound: "Certificate") -> list[str]:
    """Return what a certificate assumes: in a sentence, or as a list if it is not proven here."""
    if not (bound.promises_nothing or bound.as_printed):
        return wrap_lines(
            "It assumes that rows are independent, and that models see the labels only through "
            "these answers; --json has all assumptions."
        )
    assumptions = bound.assumptions[1:] if bound.promises_nothing else bound.assumptions
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
