"""Finds mechanisms and analysts by name, by ``module:name`` or from objects and functions."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ladderboard import _settings
from ladderboard.analysts import ANALYSTS, Analyst
from ladderboard.errors import InvalidSetting, LadderboardError
from ladderboard.mechanisms import (
    MECHANISMS,
    BootstrapLadder,
    Exact,
    GrowingLadder,
    Ladder,
    Mechanism,
    Noisy,
    OneBit,
    ParameterFreeLadder,
    Rounded,
    ShakyLadder,
    Thresholdout,
    paper_settings,
)

if TYPE_CHECKING:
    from ladderboard.analysts import Game

T = TypeVar("T")
MechanismFactory = Callable[[int, int], Mechanism]

_MECHANISM_HELP = (
    "A mechanism here is a Mechanism, a function of (n, k) that returns one, a name, "
    "'module:name', or a mapping from labels to any of these"
)
_ANALYST_HELP = (
    "An analyst here is an Analyst, a function play(game), a name, 'module:name', "
    "or a mapping from labels to any of these"
)


def _standard_error(n: int) -> float:
    """Return 1/sqrt(n), the scale of a risk's standard error."""
    return 1 / math.sqrt(n)


def _paper_shaky_ladder(n: int, k: int) -> Mechanism:
    """Return Fig. 1 with Eq. (2), even for sizes that the theorem does not cover."""
    settings = paper_settings(n, k, 0.05)
    scale = settings.noise_scale
    return ShakyLadder(
        step=settings.step, compare_noise=scale, release_noise=scale, law="laplace", origin=settings
    )


STANDARD_MECHANISMS: dict[str, Callable[[int, int], Mechanism]] = {
    "exact": lambda *_: Exact(),
    "rounded": lambda *_: Rounded(digits=2),
    # The paper's 3/sqrt(n) on the correlation is half as much on the risk.
    "noisy": lambda n, *_: Noisy(sd=1.5 * _standard_error(n)),
    "ladder_tiny": lambda n, *_: Ladder(step=0.01 * _standard_error(n)),
    "ladder": lambda n, *_: Ladder(step=_standard_error(n)),
    "parameter_free_ladder": lambda *_: ParameterFreeLadder(),
    "one_bit": lambda n, *_: OneBit(step=_standard_error(n)),
    # The defaults of Thresholdout at n = 10,000.
    "thresholdout": lambda n, *_: Thresholdout(
        threshold=4 * _standard_error(n), noise=_standard_error(n)
    ),
    "bootstrap_ladder": lambda *_: BootstrapLadder(),
    "shaky_ladder_paper": _paper_shaky_ladder,
    "shaky_ladder": lambda n, k: ShakyLadder.calibrated(n=n, questions=k),
    "growing_ladder": lambda n, k: GrowingLadder.calibrated(n=n, questions=k),
}


def import_string(text: str, fits: Callable[[Any], bool]) -> Any:
    """Return the object that ``module:name`` names.

    The module is searched on Python's path and in the current directory. ``fits`` selects the
    objects that the error message lists if the name does not exist.

    >>> import_string("math:pie", callable)
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: Module math has no 'pie'; it has acos, acosh, ...
    """
    module_name, _, name = text.partition(":")
    if not name or not all(part.isidentifier() for part in module_name.split(".")):
        raise InvalidSetting(
            "Name your own code as module:name, for example 'my_module:MyMechanism'; "
            f"got {_settings.safe_repr(text)}."
        )
    resolved: Any = _import_module(module_name)
    for part in name.split("."):
        if not hasattr(resolved, part):
            names = [
                attribute
                for attribute, value in vars(resolved).items()
                if attribute[0] != "_"
                and fits(value)
                # Leave out what the module itself imported.
                and (
                    not hasattr(value, "__qualname__")
                    or getattr(value, "__module__", module_name) == module_name
                )
            ]
            choices = f"it has {', '.join(names)}" if names else "it has nothing suitable"
            raise InvalidSetting(f"Module {module_name} has no {name!r}; {choices}.")
        resolved = getattr(resolved, part)
    return resolved


def _import_module(name: str) -> Any:
    directory = str(Path.cwd())
    if directory not in sys.path:
        sys.path.insert(0, directory)  # as python -m does; worker processes inherit our path
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise InvalidSetting(
                f"No module named {name!r} is installed or in the current directory."
            ) from None
        raise InvalidSetting(f"Module {name} cannot be imported: {error}.") from error
    except Exception as error:
        raise InvalidSetting(
            f"Module {name} cannot be imported: {type(error).__name__}: {error}"
        ) from error


@dataclass(frozen=True)
class FunctionAnalyst(Analyst):
    """An analyst made from a function ``play(game)``."""

    name: ClassVar[str] = "function"

    function: Callable[[Game], object]

    def play(self, game: Game) -> None:
        """Call the function."""
        self.function(game)

    def describe(self) -> dict[str, Any]:
        """Return the name of the function; its source is part of the identity."""
        return {"analyst": self.name, "function": self.function.__qualname__}


def resolve_mechanisms(mechanisms: Any) -> dict[str, MechanismFactory]:
    """Return factories by label: functions of (n, k) that return a mechanism."""
    return _resolve(mechanisms, _resolve_mechanism, "mechanism", _MECHANISM_HELP)


def resolve_analysts(analysts: Any) -> dict[str, Analyst]:
    """Return analysts by label."""
    return _resolve(analysts, _resolve_analyst, "analyst", _ANALYST_HELP)


def analyst_names() -> list[str]:
    """Return the names of all registered analysts."""
    return list(ANALYSTS)


def _resolve(
    entries: Any, resolve: Callable[[Any], tuple[str, T]], kind: str, rule: str
) -> dict[str, T]:
    if isinstance(entries, Mapping):
        pairs = [(str(label), resolve(entry)[1]) for label, entry in entries.items()]
    else:
        single = isinstance(entries, str) or callable(entries) or not isinstance(entries, Iterable)
        pairs = []
        for entry in [entries] if single else entries:
            if isinstance(entry, Mapping):
                pairs += _resolve(entry, resolve, kind, rule).items()
            else:
                pairs.append(resolve(entry))
    if not pairs:
        raise InvalidSetting(f"Give at least one {kind}. {rule}.")
    by_label = dict(pairs)
    if len(by_label) < len(pairs):
        labels = [label for label, _ in pairs]
        duplicate = next(label for label in labels if labels.count(label) > 1)
        raise InvalidSetting(
            f"Two {kind}s are called {duplicate!r}; give a mapping from labels to {kind}s, "
            f"or LABEL=module:name on the command line."
        )
    return by_label


def _split_label(text: str) -> tuple[str, str]:
    """Split ``LABEL=module:name``; the label is empty if there is none."""
    label, equals, rest = text.partition("=")
    if equals and not label.strip():
        raise InvalidSetting(f"Put a label before the =, as in mine=exact; got {text!r}.")
    return (label, rest) if equals else ("", text)


def _resolve_mechanism(entry: Any) -> tuple[str, MechanismFactory]:
    if isinstance(entry, str):
        label, text = _split_label(entry)
        if ":" in text:
            imported = import_string(text, _may_be_mechanism)
            name, factory = _resolve_mechanism(imported)
            return label or _default_label(imported, name, text), factory
        if text in STANDARD_MECHANISMS:
            return label or text, STANDARD_MECHANISMS[text]
        if text in MECHANISMS:
            return label or text, _resolve_mechanism(MECHANISMS[text])[1]
        raise InvalidSetting(
            f"No mechanism is named {_settings.safe_repr(text)}; "
            f"choose from {', '.join(sorted({*STANDARD_MECHANISMS, *MECHANISMS}))}, "
            "or give module:name for your own."
        )
    if isinstance(entry, type) and issubclass(entry, Mechanism):
        entry = _instantiate(entry)
    if isinstance(entry, Mechanism):
        mechanism = entry
        return _name_of(mechanism), lambda *_: mechanism
    if callable(entry) and not isinstance(entry, type):
        return getattr(entry, "__name__", type(entry).__name__), _checked_factory(entry)
    raise InvalidSetting(f"{_MECHANISM_HELP}; got {_settings.safe_repr(entry)}.")


def _checked_factory(function: Callable[[int, int], Any]) -> MechanismFactory:
    """Wrap a function of (n, k) to raise unless it returns a mechanism."""

    def make(n: int, k: int) -> Mechanism:
        name = getattr(function, "__name__", "the function")
        try:
            mechanism = function(n, k)
        except LadderboardError:
            raise
        except Exception as error:
            raise InvalidSetting(
                f"{name} failed when called with (n, k), the size of the holdout and the "
                f"number of questions: {type(error).__name__}: {error}."
            ) from error
        if not isinstance(mechanism, Mechanism):
            raise InvalidSetting(
                f"{name} must return a Mechanism for (n, k) = ({n}, {k}); "
                f"got {_settings.safe_repr(mechanism)}."
            )
        return mechanism

    return make


def _resolve_analyst(entry: Any) -> tuple[str, Analyst]:
    if isinstance(entry, str):
        label, text = _split_label(entry)
        if ":" in text:
            imported = import_string(text, _may_be_analyst)
            name, analyst = _resolve_analyst(imported)
            return label or _default_label(imported, name, text), analyst
        if text not in ANALYSTS:
            raise InvalidSetting(
                f"No analyst is named {_settings.safe_repr(text)}; "
                f"choose from {', '.join(sorted(ANALYSTS))}, or give module:name for your own."
            )
        return label or text, _instantiate(ANALYSTS[text])
    if isinstance(entry, type) and issubclass(entry, Analyst):
        entry = _instantiate(entry)
    if isinstance(entry, Analyst):
        return _name_of(entry), entry
    if callable(entry) and not isinstance(entry, (type, Mechanism)):
        return getattr(entry, "__name__", type(entry).__name__), FunctionAnalyst(entry)
    raise InvalidSetting(f"{_ANALYST_HELP}; got {_settings.safe_repr(entry)}.")


def _instantiate(kind: type[T]) -> T:
    """Return an instance of a class with its default settings."""
    try:
        return kind()
    except TypeError as error:
        raise InvalidSetting(
            f"{kind.__name__} needs settings ({error}); give an instance, or a function that "
            "returns one."
        ) from None


def _default_label(imported: Any, name: str, text: str) -> str:
    """Return the label of an imported object: the name of a class, else the name typed."""
    return name if isinstance(imported, type) else text.rpartition(":")[2]


def _name_of(participant: Mechanism | Analyst) -> str:
    return getattr(participant, "name", type(participant).__name__)


def _may_be_mechanism(candidate: Any) -> bool:
    if isinstance(candidate, type):
        return issubclass(candidate, Mechanism) and candidate is not Mechanism
    return isinstance(candidate, Mechanism) or callable(candidate)


def _may_be_analyst(candidate: Any) -> bool:
    if isinstance(candidate, type):
        return issubclass(candidate, Analyst) and candidate is not Analyst
    return isinstance(candidate, Analyst) or callable(candidate)
