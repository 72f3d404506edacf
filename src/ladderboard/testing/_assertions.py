"""Assertions with a message, which ``python -O`` does not remove."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


Subject = TypeVar("Subject")


def require(holds: bool, sentence: str) -> None:
    """Raise an AssertionError with this sentence unless the condition holds."""
    if not holds:
        raise AssertionError(sentence)


@contextmanager
def require_refusal(refusal: type[Exception], sentence: str) -> Iterator[None]:
    """Expect a refusal; raise an AssertionError on another exception, or on none."""
    try:
        yield
    except refusal:
        return
    except Exception as error:
        raise AssertionError(f"{sentence} Got {type(error).__name__}: {error}") from error
    raise AssertionError(f"{sentence} Nothing was raised.")


def pickled_copy(subject: Subject) -> Subject:
    """Return a copy made by pickling."""
    copied: Subject = pickle.loads(pickle.dumps(subject))  # noqa: S301 - made here
    return copied


def numpy_global_state() -> dict[str, Any]:
    """Return NumPy's global random state, which none of the checked classes may use."""
    state: dict[str, Any] = np.random.get_state(legacy=False)  # noqa: NPY002
    return state
