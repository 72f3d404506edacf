"""Tasks: one game of an analyst against a mechanism, with a reproducible seed and key."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import sys
import time
import traceback
import uuid
from dataclasses import asdict, dataclass, fields
from functools import lru_cache, partial
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ladderboard._version import __version__
from ladderboard.errors import GameFailed, MissingDependency

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ladderboard.analysts import Analyst
    from ladderboard.mechanisms import Mechanism

_PACKAGE = Path(__file__).parents[2]
# The packages whose code determines the result of a game or a simulated attack.
_HASHED_PACKAGES = ("analysts", "arena", "bounds", "losses", "mechanisms", "reduction", "tape")


@lru_cache(maxsize=1)
def code_version() -> str:
    """Return the version and a hash of the code behind results.

    The version alone does not change during development; results from before a change, or from a
    worker with different code, must not be reused.

    >>> code_version().startswith(__version__)
    True
    """
    digest = hashlib.blake2b(digest_size=8)
    paths = [path for name in _HASHED_PACKAGES for path in sorted((_PACKAGE / name).rglob("*.py"))]
    for path in [_PACKAGE / "_settings.py", *paths]:
        digest.update(f"{path.relative_to(_PACKAGE).as_posix()}\n".encode())
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return f"{__version__}+{digest.hexdigest()}"


def external_module(participant: Any) -> str | None:
    """Return the module that defines a mechanism or an analyst; None if it is one of ours."""
    code = getattr(participant, "function", None) or type(participant)
    module: str = code.__module__
    return None if module.partition(".")[0] == "ladderboard" else module


def describe_participant(participant: Mechanism | Analyst) -> dict[str, Any]:
    """Return class and settings; for code outside this package also a hash of its source.

    ``code_version`` covers our own code. The whole module is hashed, so that a change in a helper
    beside the class counts; imports from other modules do not.
    """
    module = external_module(participant)
    description = {
        "class": f"{type(participant).__module__}:{type(participant).__qualname__}",
        **_describe_settings(participant),
    }
    if hasattr(participant, "function"):
        description["function"] = participant.function  # written down to what it closes over
    return description if module is None else {**description, "source": _source_hash(module)}


def json_fallback(value: Any) -> Any:  # noqa: PLR0911 - a line for each kind
    """Return a JSON-able value that identifies an object that JSON cannot hold.

    An object that cannot be identified for certain gets a unique name: its task runs again, but a
    result of something else is never reused.
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
        digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
        return {"array": [str(value.dtype), list(value.shape), digest]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, (set, frozenset)) and all(isinstance(x, (str, int, float)) for x in value):
        return {"set": sorted(map(repr, value))}
    if isinstance(value, (type, ModuleType)):
        return f"{getattr(value, '__module__', '')}:{value.__name__}"
    if isinstance(value, (FunctionType, MethodType, partial)):
        return _describe_function(value)
    return uuid.uuid4().hex


def _describe_function(value: Any) -> Any:
    """Return a function's name and what it is bound to, closes over and has as defaults.

    The source of its module identifies its code.
    """
    if isinstance(value, partial):
        return {"partial": [value.func, list(value.args), value.keywords]}
    if isinstance(value, MethodType):
        return {"method": value.__qualname__, "of": _describe_attributes(value.__self__)}
    return {
        "function": f"{value.__module__}:{value.__qualname__}",
        "line": value.__code__.co_firstlineno,
        "closes over": [cell.cell_contents for cell in value.__closure__ or ()],
        "defaults": [value.__defaults__, value.__kwdefaults__],
    }


def _describe_settings(participant: Any) -> dict[str, Any]:
    try:
        described: dict[str, Any] = participant.describe()
    except (AttributeError, TypeError):  # a class without a name, or not a dataclass
        return {"settings": _describe_attributes(participant)}
    return described


def _describe_attributes(participant: Any) -> Any:
    """Return all attributes of an object, or its ``json_fallback`` if it has none."""
    return (
        dict(vars(participant)) if hasattr(participant, "__dict__") else json_fallback(participant)
    )


@lru_cache
def _source_hash(module: str) -> str:
    try:
        source = inspect.getsource(sys.modules[module])
    except (KeyError, OSError, TypeError):
        # Defined at a prompt: it may be different next time.
        return uuid.uuid4().hex
    return hashlib.blake2b(source.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class GameRow:
    """One repetition, with everything needed to run it again.

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

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON, in which None stands for NaN."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GameRow:
        """Undo ``to_json``."""
        values: dict[str, Any] = {field.name: data[field.name] for field in fields(cls)}
        values |= {name: math.nan for name, value in values.items() if value is None}
        return cls(**values)


def _error_location(error: BaseException) -> str:
    """Return the last line of user code in a traceback, or else the last line of ours."""
    import sysconfig  # noqa: PLC0415 - slow to load, rarely needed

    not_user_code = (str(_PACKAGE), *set(sysconfig.get_paths().values()))
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [frame for frame in frames if not frame.filename.startswith(not_user_code)]
    last = (user_frames or frames)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"


def repetition_seed(seed: int, analyst: str, n: int, k: int, repetition: int) -> int:
    """Return the seed of one repetition.

    It does not depend on the mechanism: all of them face the same holdouts and random choices, so
    that they can be compared in pairs.
    """
    written = json.dumps([seed, analyst, n, k, repetition]).encode()
    return int.from_bytes(hashlib.blake2b(written, digest_size=7).digest(), "big")


def play_repetition(
    mechanism: Mechanism,
    analyst: Analyst,
    *,
    names: tuple[str, str],
    n: int,
    k: int,
    repetition: int,
    seed: int,
) -> GameRow:
    """Play one repetition."""
    game_seed = repetition_seed(seed, names[1], n, k, repetition)
    start = time.perf_counter()
    game = f"{names[1]} against {names[0]}, n={n}, k={k}, repetition {repetition}"
    try:
        score = analyst.play_against(mechanism, n=n, questions=k, seed=game_seed)
    except MissingDependency:
        raise
    except (Exception, SystemExit) as error:
        # A worker's traceback is lost, so the message names the line.
        raise GameFailed(
            f"{game}: {type(error).__name__}: {error} ({_error_location(error)})"
        ) from error
    if not score.asked:
        raise GameFailed(f"{game}: the analyst asked no question.")
    return GameRow(
        *names,
        n=n,
        k=k,
        repetition=repetition,
        seed=game_seed,
        version=__version__,
        leaderboard_error=float(score.leaderboard_error),
        bias=float(score.bias),
        changes=int(score.changes),
        asked=int(score.asked),
        seconds=time.perf_counter() - start,
    )


class Task(Protocol):
    """Independent work with a reproducible result."""

    @property
    def weight(self) -> float:
        """How much work this is, compared with other tasks of the same kind."""

    def describe(self) -> dict[str, Any]:
        """Return everything that determines the result, JSON-able."""

    def run(self, threads: int | None) -> dict[str, Any]:
        """Run on this many threads and return a JSON-able result."""

    def accepts(self, result: Any) -> bool:
        """Return whether a stored result belongs to this task and is undamaged."""


def result_key(task: Task) -> str:
    """Return the key of a stored result; it changes with the code."""
    try:
        description = json.dumps(
            [code_version(), task.describe()], sort_keys=True, default=json_fallback
        )
    except (RecursionError, TypeError, ValueError):  # such as settings that contain themselves
        return uuid.uuid4().hex
    return hashlib.blake2b(description.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Match:
    """One repetition of an analyst against a mechanism."""

    names: tuple[str, str]
    mechanism: Mechanism
    analyst: Analyst
    n: int
    k: int
    repetition: int
    seed: int

    @property
    def weight(self) -> float:
        """Questions times examples, plus a fixed cost for each question."""
        return self.k * (self.n + 2_000)

    def describe(self) -> dict[str, Any]:
        """Return participants, size and seed."""
        return {
            "kind": "match",
            "names": list(self.names),
            "mechanism": describe_participant(self.mechanism),
            "analyst": describe_participant(self.analyst),
            "n": self.n,
            "k": self.k,
            "repetition": self.repetition,
            "seed": self.seed,
        }

    def accepts(self, result: Any) -> bool:
        """Return whether a stored row belongs to this game and holds numbers."""
        try:
            row = GameRow.from_json(result)
            mine = (*self.names, self.n, self.k, self.repetition)
            numbers = (row.leaderboard_error, row.bias, row.changes, row.asked, row.seconds)
            return (row.mechanism, row.analyst, row.n, row.k, row.repetition) == mine and not any(
                isinstance(number, bool) or math.isinf(number) for number in numbers
            )
        except (KeyError, TypeError, ValueError):
            return False

    def run(self, threads: int | None) -> dict[str, Any]:
        """Play the game and return its row as JSON."""
        return play_repetition(
            self.mechanism,
            self.analyst,
            names=self.names,
            n=self.n,
            k=self.k,
            repetition=self.repetition,
            seed=self.seed,
        ).to_json()
