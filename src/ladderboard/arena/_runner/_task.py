"""A task: one analyst against one mechanism, once, with a key that stays the same."""

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
# The rooms whose code decides what a game or a simulated attack comes to.
_HASHED_PACKAGES = ("analysts", "arena", "bounds", "losses", "mechanisms", "reduction", "tape")


@lru_cache(maxsize=1)
def code_version() -> str:
    """Return the version and a hash of the code behind results.

    A version stays the same while it is worked on; results kept from before a change, or made by a
    worker with other code, must not pass for those of this code.

    >>> code_version().startswith(__version__)
    True
    """
    found = hashlib.blake2b(digest_size=8)
    paths = [path for room in _HASHED_PACKAGES for path in sorted((_PACKAGE / room).rglob("*.py"))]
    for path in [_PACKAGE / "_settings.py", *paths]:
        found.update(f"{path.relative_to(_PACKAGE).as_posix()}\n".encode())
        found.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return f"{__version__}+{found.hexdigest()}"


def external_module(thing: Any) -> str | None:
    """Return the module that holds the code of a thing, if it is not one of ours."""
    code = getattr(thing, "function", None) or type(thing)
    module: str = code.__module__
    return None if module.partition(".")[0] == "ladderboard" else module


def describe_participant(thing: Mechanism | Analyst) -> dict[str, Any]:
    """Return class and settings; for code outside of this package also a hash of its source.

    Our own code is told by the build. A module's source is read whole, so that a change in a
    helper beside the class counts too; what it imports from elsewhere does not.
    """
    module = external_module(thing)
    found = {
        "class": f"{type(thing).__module__}:{type(thing).__qualname__}",
        **_describe_settings(thing),
    }
    if hasattr(thing, "function"):
        found["function"] = thing.function  # written down to what it closes over
    return found if module is None else {**found, "source": _source_hash(module)}


def json_fallback(value: Any) -> Any:  # noqa: PLR0911 - a line for each kind
    """Return what JSON cannot hold as something it can, down to the content.

    Whatever cannot be told apart for certain gets a name that never comes back: then work is done
    again, which costs time, and a result of something else is never taken.
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
        found = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
        return {"array": [str(value.dtype), list(value.shape), found]}
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
    """Return a function's name and all that it carries: what it is bound to, closes over, defaults.

    Its code is told by the source of its module.
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


def _describe_settings(thing: Any) -> dict[str, Any]:
    try:
        described: dict[str, Any] = thing.describe()
    except (AttributeError, TypeError):  # a class without a name, or no dataclass
        return {"settings": _describe_attributes(thing)}
    return described


def _describe_attributes(thing: Any) -> Any:
    """Return all attributes of an object, or what can be said of one that has none."""
    return dict(vars(thing)) if hasattr(thing, "__dict__") else json_fallback(thing)


@lru_cache
def _source_hash(module: str) -> str:
    try:
        source = inspect.getsource(sys.modules[module])
    except (KeyError, OSError, TypeError):
        # Typed into a prompt: nobody can say whether it is the same next time.
        return uuid.uuid4().hex
    return hashlib.blake2b(source.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class GameRow:
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

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON has it, which knows no NaN."""
        written = asdict(self)
        return {name: None if value != value else value for name, value in written.items()}  # noqa: PLR0124 - NaN is what differs from itself

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> GameRow:
        """Undo ``to_json``."""
        values: dict[str, Any] = {each.name: written[each.name] for each in fields(cls)}
        values |= {name: math.nan for name, value in values.items() if value is None}
        return cls(**values)


def _error_location(error: BaseException) -> str:
    """Return the last line of somebody else's code on the way to an error, or else of ours."""
    import sysconfig  # noqa: PLC0415 - slow to load, and seldom needed

    not_theirs = (str(_PACKAGE), *set(sysconfig.get_paths().values()))
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(not_theirs)]
    last = (theirs or frames)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"


def repetition_seed(seed: int, analyst: str, n: int, k: int, repetition: int) -> int:
    """Return the seed of one repetition.

    It does not depend on the mechanism: all of them meet the same holdouts and the same luck, so
    that they can be compared pair by pair.
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
    own = repetition_seed(seed, names[1], n, k, repetition)
    start = time.perf_counter()
    game = f"{names[1]} against {names[0]}, n={n}, k={k}, repetition {repetition}"
    try:
        score = analyst.play_against(mechanism, n=n, questions=k, seed=own)
    except MissingDependency:
        raise
    except (Exception, SystemExit) as error:
        # In a worker the traceback stays behind, so the sentence says where it happened.
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
        seed=own,
        version=__version__,
        leaderboard_error=float(score.leaderboard_error),
        bias=float(score.bias),
        changes=int(score.changes),
        asked=int(score.asked),
        seconds=time.perf_counter() - start,
    )


class Task(Protocol):
    """A piece of work that depends on nothing but itself."""

    @property
    def weight(self) -> float:
        """How much work this is, compared with other tasks of the same kind."""

    def describe(self) -> dict[str, Any]:
        """Return all that decides the result, JSON-able."""

    def run(self, threads: int | None) -> dict[str, Any]:
        """Do the work, on so many threads, and return a JSON-able result."""

    def accepts(self, result: Any) -> bool:
        """Tell whether a result that was kept is one of this task, whole and undamaged."""


def result_key(task: Task) -> str:
    """Return the key under which a result is kept: other code has other keys."""
    try:
        written = json.dumps(
            [code_version(), task.describe()], sort_keys=True, default=json_fallback
        )
    except (RecursionError, TypeError, ValueError):  # settings that hold themselves, or the like
        return uuid.uuid4().hex
    return hashlib.blake2b(written.encode(), digest_size=16).hexdigest()


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
        """Questions times the examples each is about, and what a question costs anyway."""
        return self.k * (self.n + 2_000)

    def describe(self) -> dict[str, Any]:
        """Who plays, on what, with which seed."""
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
        """Tell whether a kept row belongs to this game and holds numbers."""
        try:
            row = GameRow.from_json(result)
            mine = (*self.names, self.n, self.k, self.repetition)
            numbers = (row.leaderboard_error, row.bias, row.changes, row.asked, row.seconds)
            return (row.mechanism, row.analyst, row.n, row.k, row.repetition) == mine and not any(
                isinstance(each, bool) or math.isinf(each) for each in numbers
            )
        except (KeyError, TypeError, ValueError):
            return False

    def run(self, threads: int | None) -> dict[str, Any]:
        """Play."""
        return play_repetition(
            self.mechanism,
            self.analyst,
            names=self.names,
            n=self.n,
            k=self.k,
            repetition=self.repetition,
            seed=self.seed,
        ).to_json()
