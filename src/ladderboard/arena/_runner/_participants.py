"""Mechanisms and analysts as people name them."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ladderboard import _settings
from ladderboard import mechanisms as m
from ladderboard.analysts import ANALYSTS, Analyst
from ladderboard.errors import InvalidSetting, LadderboardError
from ladderboard.mechanisms import MECHANISMS, Mechanism

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
    """Return 1/sqrt(n), the size of luck."""
    return 1 / math.sqrt(n)


def _paper_shaky_ladder(n: int, k: int) -> Mechanism:
    """Return Fig. 1 with Eq. (2), also where the theorem says nothing about these sizes."""
    found = m.paper_settings(n, k, 0.05)
    scale = found.noise_scale
    return m.ShakyLadder(
        step=found.step, compare_noise=scale, release_noise=scale, law="laplace", origin=found
    )


STANDARD_MECHANISMS: dict[str, Callable[[int, int], Mechanism]] = {
    "exact": lambda *_: m.Exact(),
    "rounded": lambda *_: m.Rounded(digits=2),
    # The paper's 3/sqrt(n) on the correlation is half as much on the risk.
    "noisy": lambda n, *_: m.Noisy(sd=1.5 * _standard_error(n)),
    "ladder_tiny": lambda n, *_: m.Ladder(step=0.01 * _standard_error(n)),
    "ladder": lambda n, *_: m.Ladder(step=_standard_error(n)),
    "parameter_free_ladder": lambda *_: m.ParameterFreeLadder(),
    "one_bit": lambda n, *_: m.OneBit(step=_standard_error(n)),
    # Its own defaults at n = 10,000.
    "thresholdout": lambda n, *_: m.Thresholdout(
        threshold=4 * _standard_error(n), noise=_standard_error(n)
    ),
    "bootstrap_ladder": lambda *_: m.BootstrapLadder(),
    "shaky_ladder_paper": _paper_shaky_ladder,
    "shaky_ladder": lambda n, k: m.ShakyLadder.calibrated(n=n, questions=k),
}


def import_string(text: str, fits: Callable[[Any], bool]) -> Any:
    """Return the object that ``module:name`` names.

    The module is looked for where Python looks and in the current directory. ``fits`` tells
    which objects to list when there is none of that name.

    >>> import_string("math:pie", callable)
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: Module math has no 'pie'; there is acos, acosh, ...
    """
    module_name, _, name = text.partition(":")
    if not name or not all(part.isidentifier() for part in module_name.split(".")):
        raise InvalidSetting(
            "Code of your own is named module:name, as in 'my_module:MyMechanism'; "
            f"got {_settings.safe_repr(text)}."
        )
    found: Any = _import_module(module_name)
    for part in name.split("."):
        if not hasattr(found, part):
            names = [
                each
                for each, thing in vars(found).items()
                if each[0] != "_"
                and fits(thing)
                # Not what the module itself has imported.
                and (
                    not hasattr(thing, "__qualname__")
                    or getattr(thing, "__module__", module_name) == module_name
                )
            ]
            there_is = f"there is {', '.join(names)}" if names else "nothing in it would do"
            raise InvalidSetting(f"Module {module_name} has no {name!r}; {there_is}.")
        found = getattr(found, part)
    return found


def _import_module(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as python -m does; worker processes are given our path
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise InvalidSetting(
                f"There is no module named {name!r}, neither installed nor in the current "
                "directory."
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


def resolve_mechanisms(given: Any) -> dict[str, MechanismFactory]:
    """Return makers by label: functions of (n, k) that return a mechanism."""
    return _resolve(given, _resolve_mechanism, "mechanism", _MECHANISM_HELP)


def resolve_analysts(given: Any) -> dict[str, Analyst]:
    """Return analysts by label."""
    return _resolve(given, _resolve_analyst, "analyst", _ANALYST_HELP)


def analyst_names() -> list[str]:
    """Return the names of all registered analysts."""
    return list(ANALYSTS)


def _resolve(
    given: Any, read: Callable[[Any], tuple[str, T]], kind: str, rule: str
) -> dict[str, T]:
    if isinstance(given, Mapping):
        pairs = [(str(label), read(each)[1]) for label, each in given.items()]
    else:
        alone = isinstance(given, str) or callable(given) or not isinstance(given, Iterable)
        pairs = []
        for each in [given] if alone else given:
            if isinstance(each, Mapping):
                pairs += _resolve(each, read, kind, rule).items()
            else:
                pairs.append(read(each))
    if not pairs:
        raise InvalidSetting(f"There must be at least one {kind}. {rule}.")
    found = dict(pairs)
    if len(found) < len(pairs):
        labels = [label for label, _ in pairs]
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InvalidSetting(
            f"Two {kind}s are called {twice!r}; give a mapping from labels to {kind}s, "
            f"or LABEL=module:name on the command line."
        )
    return found


def _split_label(text: str) -> tuple[str, str]:
    """Split ``LABEL=module:name``; without a label it is empty."""
    label, equals, rest = text.partition("=")
    if equals and not label.strip():
        raise InvalidSetting(f"A label goes before the =, as in mine=exact; got {text!r}.")
    return (label, rest) if equals else ("", text)


def _resolve_mechanism(given: Any) -> tuple[str, MechanismFactory]:
    if isinstance(given, str):
        label, text = _split_label(given)
        if ":" in text:
            thing = import_string(text, _may_be_mechanism)
            own, maker = _resolve_mechanism(thing)
            return label or _default_label(thing, own, text), maker
        if text in STANDARD_MECHANISMS:
            return label or text, STANDARD_MECHANISMS[text]
        if text in MECHANISMS:
            return label or text, _resolve_mechanism(MECHANISMS[text])[1]
        raise InvalidSetting(
            f"There is no mechanism named {_settings.safe_repr(text)}; "
            f"there is {', '.join(sorted({*STANDARD_MECHANISMS, *MECHANISMS}))}, "
            "and module:name for your own."
        )
    if isinstance(given, type) and issubclass(given, Mechanism):
        given = _instantiate(given)
    if isinstance(given, Mechanism):
        made = given
        return _name_of(made), lambda *_: made
    if callable(given) and not isinstance(given, type):
        return getattr(given, "__name__", type(given).__name__), _checked_factory(given)
    raise InvalidSetting(f"{_MECHANISM_HELP}; got {_settings.safe_repr(given)}.")


def _checked_factory(function: Callable[[int, int], Any]) -> MechanismFactory:
    """Let a function of (n, k) return nothing but mechanisms."""

    def make(n: int, k: int) -> Mechanism:
        name = getattr(function, "__name__", "the function")
        try:
            made = function(n, k)
        except LadderboardError:
            raise
        except Exception as error:
            raise InvalidSetting(
                f"{name} fails when it is called with (n, k), the size of the holdout and the "
                f"number of questions: {type(error).__name__}: {error}."
            ) from error
        if not isinstance(made, Mechanism):
            raise InvalidSetting(
                f"{name} must return a Mechanism for (n, k) = ({n}, {k}); "
                f"got {_settings.safe_repr(made)}."
            )
        return made

    return make


def _resolve_analyst(given: Any) -> tuple[str, Analyst]:
    if isinstance(given, str):
        label, text = _split_label(given)
        if ":" in text:
            thing = import_string(text, _may_be_analyst)
            own, found = _resolve_analyst(thing)
            return label or _default_label(thing, own, text), found
        if text not in ANALYSTS:
            raise InvalidSetting(
                f"There is no analyst named {_settings.safe_repr(text)}; "
                f"there is {', '.join(sorted(ANALYSTS))}, and module:name for your own."
            )
        return label or text, _instantiate(ANALYSTS[text])
    if isinstance(given, type) and issubclass(given, Analyst):
        given = _instantiate(given)
    if isinstance(given, Analyst):
        return _name_of(given), given
    if callable(given) and not isinstance(given, (type, Mechanism)):
        return getattr(given, "__name__", type(given).__name__), FunctionAnalyst(given)
    raise InvalidSetting(f"{_ANALYST_HELP}; got {_settings.safe_repr(given)}.")


def _instantiate(kind: type[T]) -> T:
    """Call a class without settings."""
    try:
        return kind()
    except TypeError as error:
        raise InvalidSetting(
            f"{kind.__name__} cannot be made without settings ({error}); give one that is made, "
            "or a function that makes it."
        ) from None


def _default_label(thing: Any, own: str, text: str) -> str:
    """Return the label of a found thing: of a class its own name, of others what was typed."""
    return own if isinstance(thing, type) else text.rpartition(":")[2]


def _name_of(thing: Mechanism | Analyst) -> str:
    return getattr(thing, "name", type(thing).__name__)


def _may_be_mechanism(thing: Any) -> bool:
    if isinstance(thing, type):
        return issubclass(thing, Mechanism) and thing is not Mechanism
    return isinstance(thing, Mechanism) or callable(thing)


def _may_be_analyst(thing: Any) -> bool:
    if isinstance(thing, type):
        return issubclass(thing, Analyst) and thing is not Analyst
    return isinstance(thing, Analyst) or callable(thing)
