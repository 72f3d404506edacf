"""The majority attack, simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard._settings import number, whole
from ladderboard.arena._crew import cores
from ladderboard.arena._moments import LARGEST

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["majority_attack"]


def majority_attack(
    n: int,
    k: int,
    sigma: float = 0.0,
    repetitions: int = 100,
    seed: int = 0,
    *,
    first: int = 0,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """Simulate the paper's majority attack and return its errors, one a repetition.

    The attack asks about ``k`` random sign vectors, keeps those that correlate with the hidden
    labels, flips the others, and submits the majority vote of all. Its error falls below 1/2
    although it has learned nothing.

    Parameters
    ----------
    n
        How many examples the holdout has.
    k
        How many random vectors the attack asks about.
    sigma
        The standard deviation of the noise on every answer, in the paper's units: on the
        correlation 1 - 2 risk. On the risk it is half as much.
    repetitions
        How many independent attacks to simulate.
    seed
        Same seed, same errors, whatever the number of threads.
    first
        The number of the first repetition. A repetition depends on its number, not on the call it
        came in, so a long run can be cut and its parts joined.
    threads
        How many threads work; as many as there are cores if not given.

    Examples
    --------
    >>> errors = majority_attack(1_000, 100, repetitions=4, seed=1)
    >>> errors
    array([0.392, 0.396, 0.393, 0.413])
    >>> majority_attack(1_000, 100, repetitions=2, seed=1, first=2)
    array([0.393, 0.413])

    Notes
    -----
    The law is that of the paper's reference implementation, which holds k n signs of 8 bytes three
    times over. Here rows are packed into words that are drawn, counted and forgotten, and memory
    grows with n log k. Runs that differ in ``sigma`` alone share their random rows.
    `majority_attack_moments` has the exact mean and standard deviation. The first call on a
    machine compiles for a few seconds.

    References
    ----------
    Hardt, "Climbing a shaky ladder: Better adaptive risk estimation" (2017), the experiments and
    the reference implementation in its appendix.
    """
    n = whole("n", n, at_least=1, at_most=LARGEST)
    k = whole("k", k, at_least=1, at_most=LARGEST)
    sigma = number("sigma", sigma, at_least=0)
    repetitions = whole("repetitions", repetitions, at_least=1, at_most=LARGEST)
    seed = whole("seed", seed, at_least=0, at_most=2**64 - 1)
    first = whole("first", first, at_least=0, at_most=2**62)
    workers = cores() if threads is None else whole("threads", threads, at_least=1)
    # numba is loaded when an attack is run, not when its name is.
    from ladderboard.arena._run import Run  # noqa: PLC0415

    return Run(n, k, sigma, seed).errors(first, repetitions, workers)
