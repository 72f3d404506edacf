"""Running a command: exit codes, refusals for machines, and fast parsing of plain command lines.

Typer checks values with pydantic, whose import takes longer than a question. A line in which
nothing is unusual is read here; of any other nothing is returned, and Typer says what it thinks.
"""

import gc
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, NoReturn, get_args

import typer
from typer.models import ArgumentInfo, OptionInfo

from ladderboard._formatting import printable
from ladderboard.cli._guard import find_simple_command
from ladderboard.cli._output import echo_json_error, exit_with_error
from ladderboard.errors import (
    BrokenDump,
    BrokenLedger,
    BudgetSpent,
    GuardUnreachable,
    InvalidSetting,
    InvalidState,
    LadderboardError,
    NotOpen,
    RateLimited,
    ServerUnreachable,
    SessionClosed,
    StaleCopy,
    StorageFailed,
    WrongKey,
    storage_error,
)

_REFUSED, _STORAGE, _INTERNAL_ERROR, _INTERRUPTED = 2, 4, 70, 130  # 70: as sysexits.h has it
# The first that fits counts. A wrong key file is the word of who typed it; what else is found in a
# file that is there is the file's.
_EXIT_CODES: tuple[tuple[tuple[type[LadderboardError], ...], int], ...] = (
    ((WrongKey,), 2),
    ((BudgetSpent, NotOpen, SessionClosed, RateLimited), 3),
    (
        (
            BrokenDump,
            BrokenLedger,
            InvalidState,
            StaleCopy,
            StorageFailed,
            GuardUnreachable,
            ServerUnreachable,
        ),
        _STORAGE,
    ),
)
# What Typer raises for a line that it cannot read; it has had several homes.
_ClickException: Any = next(
    each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException"
)
_PARSERS: dict[Any, Callable[[str], Any]] = {str: str, Path: Path, float: float}


def run_command(app: Callable[..., Any], words: list[str]) -> NoReturn:
    """Run a verb and exit; under ``--json`` whatever comes of it is one JSON object."""
    for stream in (sys.stdout, sys.stderr):  # names of files need not be text
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    end = words.index("--") if "--" in words else len(words)
    as_json = "--json" in words[:end]
    if words[:1] == ["serve"]:
        _run_worker(app, words)
    try:
        code = _run_parsed(app, words, as_json=as_json)
    except LadderboardError as error:
        code = exit_code(error)
        exit_with_error(error, code, as_json=as_json)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - see below
        if isinstance(error, _ClickException):
            code = error.exit_code
            echo_json_error("usage", error.format_message())
        elif isinstance(error, OSError) and (full := _disk_error(error)) is not None:
            code = _STORAGE
            exit_with_error(full, code, as_json=as_json and error.filename is not None)
        else:
            # Not 1, which is Python's own: it would say that a model is no better.
            code = _INTERNAL_ERROR
            told = traceback.format_exc().splitlines()
            print("\n".join(map(printable, told)), file=sys.stderr)  # noqa: T201
            if as_json:
                echo_json_error("fault", f"This should not happen: {type(error).__name__}.")
    if words[:2] == ["guard", "ask"] and code in {0, 1}:
        gc.freeze()  # nothing is garbage but everything; looking for it takes a fifth of the time
    sys.exit(code)


def _run_worker(app: Callable[..., Any], words: list[str]) -> None:
    """Run a worker of a server, if this is one, and exit; all that it says goes to the log."""
    from ladderboard.server import (  # noqa: PLC0415
        is_worker,
        worker_log,
    )

    if is_worker():
        with worker_log():
            sys.exit(_run_parsed(app, words, as_json=True))


def exit_code(error: Exception) -> int:
    """Return the exit code of a verb that ended so."""
    if not isinstance(error, LadderboardError):
        return _INTERNAL_ERROR
    return next((code for kinds, code in _EXIT_CODES if isinstance(error, kinds)), _REFUSED)


def _disk_error(error: OSError) -> LadderboardError | None:
    """Return what to say of a disk that is full or may only be read; None if it is neither.

    It may be that of standard output, which has no name, and where nothing more can be said.
    """
    failed = storage_error(error, f"{error.filename or 'Standard output'} cannot be written")
    if type(failed) is StorageFailed:
        return None
    if error.filename is not None:
        return failed
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return type(failed)(f"{failed} What was done stays done; the same again costs nothing.")


def _run_parsed(app: Callable[..., Any], words: list[str], *, as_json: bool) -> int:
    verb = find_simple_command(words[1:2]) if words[0] == "guard" else None
    given = None if verb is None else parse_simple_arguments(verb, words[2:])
    if verb is None or given is None:
        return app(words, prog_name="ladderboard", standalone_mode=not as_json) or 0
    try:
        verb(**given)
    except typer.Exit as done:
        return done.exit_code
    return 0


def parse_simple_arguments(verb: Callable[..., None], words: list[str]) -> dict[str, Any] | None:
    """Return the arguments with which to call a verb; None where Typer must look at the line.

    >>> from typing import Annotated
    >>> import typer
    >>> def verb(
    ...     file: Annotated[Path, typer.Argument()],
    ...     *,
    ...     training: Annotated[float | None, typer.Option()] = None,
    ...     as_json: Annotated[bool, typer.Option("--json")] = False,
    ... ) -> None: ...
    >>> parse_simple_arguments(verb, ["a.db", "--training=0.5", "--json"])
    {'file': PosixPath('a.db'), 'training': 0.5, 'as_json': True}
    >>> parse_simple_arguments(verb, ["a.db", "--trainig", "0.5"]), parse_simple_arguments(verb, [])
    (None, None)
    """
    try:
        return _parse_arguments(verb, words)
    except InvalidSetting:
        raise
    except Exception:  # noqa: BLE001 - whatever it is, Typer will say it better
        return None


class _Parameters(NamedTuple):
    """What a verb takes: by place, by option, and what it cannot do without."""

    places: list[tuple[str, Callable[[str], Any]]]
    options: dict[str, tuple[str, Callable[[str], Any]]]
    needed: set[str]


def _inspect_parameters(verb: Callable[..., None]) -> _Parameters:
    wanted = _Parameters([], {}, set())
    for name, parameter in inspect.signature(verb).parameters.items():
        kind, info = get_args(parameter.annotation)
        reads = (name, _value_parser(kind, info))
        if parameter.default is parameter.empty:
            wanted.needed.add(name)
        if isinstance(info, ArgumentInfo):
            wanted.places.append(reads)
        else:
            # In an annotation the first name that an option is given stands where defaults do.
            given = [each for each in (info.default, *(info.param_decls or ())) if each is not ...]
            wanted.options.update(dict.fromkeys(given or [f"--{name.replace('_', '-')}"], reads))
    return wanted


def _parse_arguments(verb: Callable[..., None], words: list[str]) -> dict[str, Any]:
    places, options, needed = _inspect_parameters(verb)
    found: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if word == "-" or not word.startswith("-"):
            name, reader = places.pop(0)
            found[name] = reader(word)
            continue
        option, equals, value = word.partition("=")
        name, reader = options[option]
        if name in found or (reader is _parse_flag and equals):
            raise ValueError(word)
        if not equals and reader is not _parse_flag:
            value = next(rest)
            if value.startswith("--"):
                # Typer would take it for the value, and a gate, say, would silently be none.
                raise InvalidSetting(f"{option} needs a value, and {value} is an option.")
        found[name] = reader(value)
    if not needed <= set(found):
        raise LookupError
    return found


def _value_parser(kind: Any, info: ArgumentInfo | OptionInfo) -> Callable[[str], Any]:
    if info.parser is not None:
        return info.parser
    if kind is bool:
        return _parse_flag
    (plain,) = [get_arg for get_arg in get_args(kind) or (kind,) if get_arg is not NoneType]
    return _PARSERS[plain]


def _parse_flag(_: str) -> bool:
    return True
