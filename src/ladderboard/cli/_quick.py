"""Reading a command line without waiting for the library that explains what is wrong with one.

Typer checks values with pydantic, whose import takes longer than a question. A line in which
nothing is unusual is read here; of any other nothing is returned, and Typer says what it thinks.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, get_args

from typer.models import ArgumentInfo, OptionInfo

from ladderboard.errors import InvalidSetting

__all__ = ["read_quickly"]

_READERS: dict[Any, Callable[[str], Any]] = {str: str, Path: Path, float: float}


def read_quickly(verb: Callable[..., None], words: list[str]) -> dict[str, Any] | None:
    """Return the arguments with which to call a verb; None where Typer must look at the line.

    >>> from typing import Annotated
    >>> import typer
    >>> def verb(
    ...     file: Annotated[Path, typer.Argument()],
    ...     *,
    ...     training: Annotated[float | None, typer.Option()] = None,
    ...     as_json: Annotated[bool, typer.Option("--json")] = False,
    ... ) -> None: ...
    >>> read_quickly(verb, ["a.db", "--training=0.5", "--json"])
    {'file': PosixPath('a.db'), 'training': 0.5, 'as_json': True}
    >>> read_quickly(verb, ["a.db", "--trainig", "0.5"]), read_quickly(verb, [])
    (None, None)
    """
    try:
        return _read(verb, words)
    except InvalidSetting:
        raise
    except Exception:  # noqa: BLE001 - whatever it is, Typer will say it better
        return None


class _Wanted(NamedTuple):
    """What a verb takes: by place, by option, and what it cannot do without."""

    places: list[tuple[str, Callable[[str], Any]]]
    options: dict[str, tuple[str, Callable[[str], Any]]]
    needed: set[str]


def _wanted(verb: Callable[..., None]) -> _Wanted:
    wanted = _Wanted([], {}, set())
    for name, parameter in inspect.signature(verb).parameters.items():
        kind, info = get_args(parameter.annotation)
        reads = (name, _reader(kind, info))
        if parameter.default is parameter.empty:
            wanted.needed.add(name)
        if isinstance(info, ArgumentInfo):
            wanted.places.append(reads)
        else:
            # In an annotation the first name that an option is given stands where defaults do.
            given = [each for each in (info.default, *(info.param_decls or ())) if each is not ...]
            wanted.options.update(dict.fromkeys(given or [f"--{name.replace('_', '-')}"], reads))
    return wanted


def _read(verb: Callable[..., None], words: list[str]) -> dict[str, Any]:
    places, options, needed = _wanted(verb)
    found: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if word == "-" or not word.startswith("-"):
            name, reader = places.pop(0)
            found[name] = reader(word)
            continue
        option, equals, value = word.partition("=")
        name, reader = options[option]
        if name in found or (reader is _flag and equals):
            raise ValueError(word)
        if not equals and reader is not _flag:
            value = next(rest)
            if value.startswith("--"):
                # Typer would take it for the value, and a gate, say, would silently be none.
                raise InvalidSetting(f"{option} needs a value, and {value} is an option.")
        found[name] = reader(value)
    if not needed <= set(found):
        raise LookupError
    return found


def _reader(kind: Any, info: ArgumentInfo | OptionInfo) -> Callable[[str], Any]:
    if info.parser is not None:
        return info.parser
    if kind is bool:
        return _flag
    (plain,) = [each for each in get_args(kind) or (kind,) if each is not NoneType]
    return _READERS[plain]


def _flag(_: str) -> bool:
    return True
