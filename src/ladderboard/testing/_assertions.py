"""Promises: assertions that speak, and that ``python -O`` does not remove."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def require(kept: bool, sentence: str) -> None:
    """Raise an AssertionError with this sentence unless the promise is kept."""
    if not kept:
        raise AssertionError(sentence)


@contextmanager
def require_refusal(refusal: type[Exception], sentence: str) -> Iterator[None]:
    """Expect a refusal; anything else, an answer included, breaks the promise."""
    try:
        yield
    except refusal:
        return
    except Exception as error:
        raise AssertionError(f"{sentence} Got {type(error).__name__}: {error}") from error
    raise AssertionError(f"{sentence} Nothing was raised.")
