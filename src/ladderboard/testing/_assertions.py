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


def require_instance(subject: Any, kind: type, noun: str) -> None:
    """Raise an AssertionError unless this is an object of a class that has a name."""
    article = "An" if noun[0] in "aeiou" else "A"
    given = type(subject).__name__
    if isinstance(subject, type):
        given = f"the class {subject.__name__} itself; add ()"
    require(
        isinstance(subject, kind),
        f"{article} {noun} must be an instance of {kind.__name__}; got {given}.",
    )
    require(
        isinstance(getattr(subject, "name", None), str),
        f'{article} {noun} must have a name: write name: ClassVar[str] = "mine" in its class.',
    )


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
