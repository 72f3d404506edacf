"""Numbers as people type them."""

import re

import typer

__all__ = ["several", "whole"]


def whole(text: str) -> int:
    """Read a whole number, also written as 1e4, 10_000 or, as plans print it, 10,000.

    >>> whole("1e4"), whole("10_000"), whole("10,000")
    (10000, 10000, 10000)
    """
    try:
        return int(text)
    except ValueError:
        pass
    if re.fullmatch(r"\d{1,3}(,\d{3})+", text):
        return int(text.replace(",", ""))
    try:
        read = float(text.replace("_", ""))
        if read.is_integer():
            return int(read)
    except ValueError:
        pass
    raise typer.BadParameter(f"A whole number is wanted, as in 1000 or 1e3; got {text!r}.")


def several(text: str | None) -> list[int] | None:
    """Read whole numbers with commas between.

    >>> several("1000,1e4")
    [1000, 10000]
    """
    return None if text is None else [whole(each) for each in text.split(",")]
