"""A row: one analyst against one mechanism, once."""

from __future__ import annotations

import hashlib
import json
import math
import time
import traceback
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard._version import __version__
from ladderboard.errors import GameFailed, MissingDependency

if TYPE_CHECKING:
    from collections.abc import Mapping

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

    def write(self) -> dict[str, Any]:
        """Return the row as JSON has it, which knows no NaN."""
        written = asdict(self)
        return {name: None if value != value else value for name, value in written.items()}  # noqa: PLR0124 - NaN is what differs from itself

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Row:
        """Undo ``write``."""
        values: dict[str, Any] = {each.name: written[each.name] for each in fields(cls)}
        values |= {name: math.nan for name, value in values.items() if value is None}
        return cls(**values)


def _place(error: BaseException) -> str:
    """Return the last line of somebody else's code on the way to an error, or else of ours."""
    import sysconfig  # noqa: PLC0415 - slow to load, and seldom needed

    not_theirs = (str(Path(__file__).parents[1]), *set(sysconfig.get_paths().values()))
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(not_theirs)]
    last = (theirs or frames)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"


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
    own = row_seed(seed, names[1], n, k, repetition)
    start = time.perf_counter()
    game = f"{names[1]} against {names[0]}, n={n}, k={k}, repetition {repetition}"
    try:
        score = analyst.meet(mechanism, n=n, questions=k, seed=own)
    except MissingDependency:
        raise
    except (Exception, SystemExit) as error:
        # In a worker the traceback stays behind, so the sentence says where it happened.
        raise GameFailed(f"{game}: {type(error).__name__}: {error} ({_place(error)})") from error
    if not score.asked:
        raise GameFailed(f"{game}: the analyst asked no question.")
    return Row(
        *names,
        n=n,
        k=k,
        repetition=repetition,
        seed=own,
        version=__version__,
        leaderboard_error=float(score.leaderboard_error),
        bias=float(score.bias),
        changes=int(score.changes),
        asked=int(score.asked),
        seconds=time.perf_counter() - start,
    )
