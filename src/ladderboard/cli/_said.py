"""What is said: to a person line by line, to a machine as one JSON object."""

import json
import os
import re
import sys
from typing import Any, NoReturn

from ladderboard import errors
from ladderboard.errors import BrokenLedger, InvalidInput, LadderboardError, Problem

__all__ = ["note", "printable", "refuse", "say", "say_error", "say_json", "say_secret"]


def printable(text: object) -> str:
    r"""Return a text that may come from a file as a terminal may get it: controls are escaped.

    >>> printable("a\x1b[2Jb\u202ec")
    'a\\x1b[2Jb\\u202ec'
    """
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in str(text)
    )


def say(*lines: str) -> None:
    """Print lines, with whatever a terminal might obey escaped: some words come from elsewhere.

    Whoever reads us may have gone, as ``| head`` does; then nothing is left to say. What was done
    stays done, and the exit code still tells it.
    """
    try:
        for line in lines:
            print(printable(line))  # noqa: T201
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(*lines: str) -> None:
    """Print lines on stderr, where stdout holds one thing alone, for a shell to take."""
    for line in lines:
        print(printable(line), file=sys.stderr)  # noqa: T201


def say_secret(what: str, secret: str) -> None:
    """Print something that is told once, alone on stdout; what it is goes to stderr."""
    if sys.stdout.isatty():
        note(f"{what}, which is not shown again:")
    else:
        note(f"{what} went to standard output and is not shown again.")
    say(secret)


def say_json(content: dict[str, Any]) -> None:
    """Print one JSON object: ASCII, on one line."""
    say(json.dumps(content, allow_nan=False))


def say_error(code: str, message: str, problems: tuple[Problem, ...] = (), **more: Any) -> None:
    """Tell a machine what was refused and why."""
    listed = [{**vars(each), "ids": list(each.ids)} for each in problems]
    say_json({"error": {"code": code, "message": message, "problems": listed, **more}})


def refuse(error: LadderboardError, code: int = 2, *, as_json: bool = False) -> NoReturn:
    """Say what was refused and why, and exit: to a person on stderr, one line for each problem."""
    problems = error.problems if isinstance(error, InvalidInput) else ()
    if as_json:
        # What a room has more than that is its own affair.
        known = next(each for each in type(error).__mro__ if each.__module__ == errors.__name__)
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", known.__name__).lower()
        more = {"entry": error.entry} if isinstance(error, BrokenLedger) else {}
        say_error(name, str(error), problems, **more)
    else:
        lines = str(error).splitlines() if len(problems) > 1 else [" ".join(str(error).split())]
        print("ladderboard:", "\n".join(map(printable, lines)), file=sys.stderr)  # noqa: T201
    sys.exit(code)
