"""A row: one analyst against one mechanism, once."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ladderboard.analysts import Analyst
    from ladderboard.mechanisms import Mechanism

__all__ = ["Row", "play", "row_seed"]


@dataclass(frozen=True)
class Row:
    """One repetition, with all that is needed to run it again.

    ``bias`` is how much better the analyst's last model looks on the holdout than it is,
    ``changes`` how often the board visibly moved, ``seconds`` how long it took (the one number
    that differs between two runs).
    """

    mechanism: str
    analyst: str
    n: int
    k: int
    repetition: int
    seed: int
    version: str
    leaderboard_error: float
    bias: float
    changes: int
    asked: int
    seconds: float


def row_seed(seed: int, analyst: str, n: int, k: int, repetition: int) -> int:
    """Return the seed of one repetition.

    It does not depend on the mechanism: all of them meet the same holdouts and the same luck, so
    that they can be compared pair by pair.
    """
    written = json.dumps([seed, analyst, n, k, repetition]).encode()
    return int.from_bytes(hashlib.blake2b(written, digest_size=7).digest(), "big")


def play(
    mechanism: Mechanism,
    analyst: Analyst,
    *,
    names: tuple[str, str],
    n: int,
    k: int,
    repetition: int,
    seed: int,
) -> Row:
    """Play one repetition."""
    from ladderboard import __version__  # noqa: PLC0415 - the front door imports us

    own = row_seed(seed, names[1], n, k, repetition)
    start = time.perf_counter()
    score = analyst.meet(mechanism, n=n, questions=k, seed=own)
    return Row(
        *names,
        n=n,
        k=k,
        repetition=repetition,
        seed=own,
        version=__version__,
        leaderboard_error=score.leaderboard_error,
        bias=score.bias,
        changes=score.changes,
        asked=score.asked,
        seconds=time.perf_counter() - start,
    )
