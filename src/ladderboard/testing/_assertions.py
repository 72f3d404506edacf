"""Promises: assertions that speak, and that ``python -O`` does not remove."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


Subject = TypeVar("Subject")


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


def pickled_copy(subject: Subject) -> Subject:
    """Return what comes back from pickling."""
    copied: Subject = pickle.loads(pickle.dumps(subject))  # noqa: S301 - made here
    return copied


def numpy_global_state() -> dict[str, Any]:
    """Return NumPy's global random state, which none of the checked classes may use."""
    state: dict[str, Any] = np.random.get_state(legacy=False)  # noqa: NPY002
    return state
