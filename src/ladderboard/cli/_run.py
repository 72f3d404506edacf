"""Running a command: exit codes, errors as JSON, and fast parsing of simple command lines.

Typer checks values with pydantic, whose import takes longer than `guard ask` itself. Command lines
without anything unusual are parsed here; all others are left to Typer and its messages.
"""

import gc
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, NoReturn, get_args

import typer
from typer.models import ArgumentInfo, OptionInfo

from ladderboard.cli._app import load_command
from ladderboard.cli._guard import find_simple_command
from ladderboard.cli._output import echo_err, echo_json_error, exit_with_error
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
# The first match counts. A wrong key file is a mistake on the command line (2); other faults of an
# existing file are storage errors (4).
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
# Raised by Typer for an invalid command line; where it can be imported from depends on the version.
_ClickException: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)
_PARSERS: dict[Any, Callable[[str], Any]] = {str: str, Path: Path, float: float}
_SIMPLE_COMMANDS = {
    ("gate", "check"): "_guard._gate:check",
    ("gate", "promote"): "_guard._gate:promote",
    ("submit",): "_client._submit:submit",
    ("plan",): "_plan:plan",
}
_WITHOUT_COLLECTION = (["guard", "ask"], ["gate", "check"], ["submit"])
"""Commands so short that the collection of garbage at their end is skipped."""


def run_command(app: Callable[..., Any], argv: list[str]) -> NoReturn:
    """Run a command and exit; with ``--json`` the outcome is one JSON object, errors included."""
    for stream in (sys.stdout, sys.stderr):  # file names may hold undecodable bytes
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    end = argv.index("--") if "--" in argv else len(argv)
    as_json = "--json" in argv[:end]
    if argv[:1] == ["serve"]:
        _run_worker(app, argv)
    try:
        code = _run_parsed(app, argv, as_json=as_json)
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
            # Not 1, Python's default: for `guard ask` it means that the model did not improve.
            code = _INTERNAL_ERROR
            lines = traceback.format_exc().splitlines()
            echo_err(*lines)
            if as_json:
                echo_json_error(
                    "fault", f"Internal error ({type(error).__name__}); please report it."
                )
    if code in {0, 1} and any(argv[: len(words)] == words for words in _WITHOUT_COLLECTION):
        gc.freeze()  # skip the collection at exit: it takes a fifth of the run
    sys.exit(code)


def _run_worker(app: Callable[..., Any], argv: list[str]) -> None:
    """If this process is a server's worker, run it and exit; its output goes to the log."""
    from ladderboard.server import (  # noqa: PLC0415
        is_worker,
        worker_log,
    )

    if is_worker():
        with worker_log():
            sys.exit(_run_parsed(app, argv, as_json=True))


def exit_code(error: Exception) -> int:
    """Return the exit code of a command that raised this."""
    if not isinstance(error, LadderboardError):
        return _INTERNAL_ERROR
    return next((code for kinds, code in _EXIT_CODES if isinstance(error, kinds)), _REFUSED)


def _disk_error(error: OSError) -> LadderboardError | None:
    """Return the error for a disk that is full or read-only; None for any other error.

    A full disk may be that of standard output; then nothing more is written to it.
    """
    failed = storage_error(error, f"{error.filename or 'Standard output'} cannot be written")
    if type(failed) is StorageFailed:
        return None
    if error.filename is not None:
        return failed
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return type(failed)(
        f"{failed} No data were lost. You can repeat the command; it is not counted twice."
    )


def _run_parsed(app: Callable[..., Any], argv: list[str], *, as_json: bool) -> int:
    code = run_simple(argv)
    if code is None:
        return app(argv, prog_name="ladderboard", standalone_mode=not as_json) or 0
    return code


def run_simple(argv: list[str]) -> int | None:
    """Run a command whose line needs no Typer, and return its exit code; None for all others."""
    command, rest = _find_command(argv)
    arguments = None if command is None else parse_simple_arguments(command, rest)
    if command is None or arguments is None:
        return None
    try:
        command(**arguments)
    except typer.Exit as done:
        return done.exit_code
    return 0


def _find_command(argv: list[str]) -> tuple[Callable[..., None] | None, list[str]]:
    """Return the function of a command that can be parsed here, and its arguments."""
    if argv[0] == "guard":
        return find_simple_command(argv[1:2]), argv[2:]
    for words, path in _SIMPLE_COMMANDS.items():
        if tuple(argv[: len(words)]) == words:
            return load_command(path), argv[len(words) :]
    return None, []


def parse_simple_arguments(command: Callable[..., None], argv: list[str]) -> dict[str, Any] | None:
    """Return the arguments to call a command with; None if Typer has to parse the line.

    >>> from typing import Annotated
    >>> import typer
    >>> def command(
    ...     file: Annotated[Path, typer.Argument()],
    ...     *,
    ...     training: Annotated[float | None, typer.Option()] = None,
    ...     as_json: Annotated[bool, typer.Option("--json")] = False,
    ... ) -> None: ...
    >>> parse_simple_arguments(command, ["a.db", "--training=0.5", "--json"])
    {'file': PosixPath('a.db'), 'training': 0.5, 'as_json': True}
    >>> parse_simple_arguments(command, ["a.db", "--trainig", "0.5"]) is None
    True
    >>> parse_simple_arguments(command, []) is None
    True
    """
    try:
        return _parse_arguments(command, argv)
    except InvalidSetting:
        raise
    except (LookupError, ValueError, TypeError, StopIteration, _ClickException):
        return None  # Typer has the better message


class _Parameters(NamedTuple):
    """The parameters of a command: positional, options, and the names of required ones."""

    positional: list[tuple[str, Callable[[str], Any]]]
    options: dict[str, tuple[str, Callable[[str], Any]]]
    required: set[str]


def _inspect_parameters(command: Callable[..., None]) -> _Parameters:
    parameters = _Parameters([], {}, set())
    for name, parameter in inspect.signature(command).parameters.items():
        kind, info = get_args(parameter.annotation)
        entry = (name, _value_parser(kind, info))
        if parameter.default is parameter.empty:
            parameters.required.add(name)
        if isinstance(info, ArgumentInfo):
            parameters.positional.append(entry)
        else:
            # Inside Annotated the first name of an option is in ``default``.
            names = [word for word in (info.default, *(info.param_decls or ())) if word is not ...]
            parameters.options.update(
                dict.fromkeys(names or [f"--{name.replace('_', '-')}"], entry)
            )
    return parameters


def _parse_arguments(command: Callable[..., None], argv: list[str]) -> dict[str, Any]:
    positional, options, required = _inspect_parameters(command)
    arguments: dict[str, Any] = {}
    rest = iter(argv)
    for word in rest:
        if word == "-" or not word.startswith("-"):
            name, parse = positional.pop(0)
            arguments[name] = parse(word)
            continue
        option, equals, value = word.partition("=")
        name, parse = options[option]
        if name in arguments or (parse is _parse_flag and equals):
            raise ValueError(word)
        if not equals and parse is not _parse_flag:
            value = next(rest)
            if value.startswith("--"):
                # Typer would take it for the value, and --fail-unless-improved, say, would be lost.
                raise InvalidSetting(f"{option} needs a value; {value} is an option.")
        arguments[name] = parse(value)
    if not required <= set(arguments):
        raise LookupError
    return arguments


def _value_parser(kind: Any, info: ArgumentInfo | OptionInfo) -> Callable[[str], Any]:
    if info.parser is not None:
        return info.parser
    if kind is bool:
        return _parse_flag
    (type_,) = [arg for arg in get_args(kind) or (kind,) if arg is not NoneType]
    return type_ if issubclass(type_, Enum) else _PARSERS[type_]


def _parse_flag(_: str) -> bool:
    return True
