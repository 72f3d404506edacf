"""Output: lines, JSON, errors, tables, CSV, progress bars and commands to type next."""

import csv
import io
import json
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from ladderboard import errors
from ladderboard._formatting import printable
from ladderboard.errors import BrokenLedger, InvalidInput, LadderboardError, Problem

_MAX_WIDTH, _MIN_WIDTH = 100, 24  # characters in a line
_TIME_SUFFIX = "(UTC)"  # how the headers of columns of times end
_COLUMN_GAP = 2  # characters between columns
_MIN_CUT_WIDTH = 12  # characters, at least, for the column that is shortened

# Codes under --json are a contract: a class that was renamed keeps its code.
_JSON_CODES = {
    "Conflict": "taken",
    "IdempotencyKeyReused": "key_reused",
    "QuotaExceeded": "no_room",
    "RateLimited": "too_soon",
    "StaleCopy": "old_copy",
    "WorkerError": "workers_lost",
}


def echo(*lines: str) -> None:
    """Print lines on stdout, with control characters escaped: some of the text is not ours.

    A reader that has gone, as with ``| head``, is not an error: the exit code still reports what
    was done.
    """
    try:
        for line in lines:
            sys.stdout.write(f"{printable(line)}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def echo_err(*lines: str) -> None:
    """Print lines on stderr, so that stdout holds only what a shell may want to capture."""
    for line in lines:
        sys.stderr.write(f"{printable(line)}\n")


def echo_secret(label: str, *secrets: str) -> None:
    """Print secrets alone on stdout, one on each line, and what they are on stderr."""
    if sys.stdout.isatty():
        echo_err(f"{label}, which {_are(secrets)} not shown again:")
    else:
        echo_err(f"{label} went to standard output and {_are(secrets)} not shown again.")
    echo(*secrets)


def _are(things: tuple[str, ...]) -> str:
    return "is" if len(things) == 1 else "are"


def echo_json(content: dict[str, Any]) -> None:
    """Print one JSON object: ASCII, on one line."""
    echo(json.dumps(content, allow_nan=False))


def echo_json_error(
    code: str, message: str, problems: tuple[Problem, ...] = (), **fields: Any
) -> None:
    """Print an error as one JSON object."""
    items = [{**vars(problem), "ids": list(problem.ids)} for problem in problems]
    echo_json({"error": {"code": code, "message": message, "problems": items, **fields}})


def exit_with_error(error: LadderboardError, code: int = 2, *, as_json: bool = False) -> NoReturn:
    """Print an error and exit: on stderr, one line for each problem, or as JSON on stdout."""
    problems = error.problems if isinstance(error, InvalidInput) else ()
    if as_json:
        # Subclasses outside errors.py have the code of the exported class above them.
        exported = next(
            base for base in type(error).__mro__ if base.__module__ == errors.__name__
        ).__name__
        name = _JSON_CODES.get(exported) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", exported).lower()
        fields = {"entry": error.entry} if isinstance(error, BrokenLedger) else {}
        echo_json_error(name, str(error), problems, **fields)
    else:
        lines = str(error).splitlines() if len(problems) > 1 else [" ".join(str(error).split())]
        text = "\n".join(map(printable, lines))
        sys.stderr.write(f"ladderboard: {text}\n")
    sys.exit(code)


def terminal_width() -> int:
    """Return the width to write in: the terminal's, between 24 and 100; 80 in a pipe."""
    return min(max(shutil.get_terminal_size().columns, _MIN_WIDTH), _MAX_WIDTH)


def wrap_lines(text: str, *, indent: str = "", first: str | None = None) -> list[str]:
    """Return a text in lines that fit the terminal; words are never broken."""
    return textwrap.wrap(
        printable(text),
        terminal_width(),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def format_minute(time: str | None) -> str | None:
    """Return an ISO 8601 time for a table, to the minute.

    >>> format_minute("2027-01-31T23:59:59Z")
    '2027-01-31 23:59'
    """
    return None if time is None else f"{time[:10]} {time[11:16]}"


def echo_table(
    head: tuple[str, ...],
    rows: list[tuple[object, ...]],
    *,
    right: tuple[str, ...] = (),
    shrink_column: str = "",
) -> None:
    """Print a table with a header; the columns named in ``right`` are aligned to the right.

    On a terminal ``shrink_column`` is shortened to the width that the others leave. Control
    characters in cells are escaped.
    """
    head = tuple(map(printable, head))
    cells = [tuple("-" if cell is None else printable(cell) for cell in row) for row in rows]
    right_columns = {index for index, name in enumerate(head) if name in right}
    if sys.stdout.isatty():
        _draw_table(head, cells, right_columns, shrink_column)
        return
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for row in (head, *cells):
        padded = [
            cell.rjust(width) if index in right_columns else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        echo("  ".join(padded).rstrip())


def _draw_table(
    head: tuple[str, ...], rows: list[tuple[str, ...]], right_columns: set[int], shrink_column: str
) -> None:
    from rich import cells  # noqa: PLC0415 - only for a terminal
    from rich.box import SIMPLE  # noqa: PLC0415 - only for a terminal
    from rich.console import Console  # noqa: PLC0415 - same
    from rich.table import Table  # noqa: PLC0415 - same

    console = Console(highlight=False, markup=False)
    widths = [max(map(cells.cell_len, column)) for column in zip(head, *rows, strict=True)]
    others = sum(width for name, width in zip(head, widths, strict=True) if name != shrink_column)
    cut_width = max(console.width - others - _COLUMN_GAP * len(head), _MIN_CUT_WIDTH)
    table = Table(box=SIMPLE, pad_edge=False)
    for index, name in enumerate(head):
        # Names to copy, numbers and times stay on one line.
        one_line = index == 0 or index in right_columns or name.endswith(_TIME_SUFFIX)
        table.add_column(
            name,
            justify="right" if index in right_columns else "left",
            no_wrap=one_line or name == shrink_column,
            overflow="ellipsis" if name == shrink_column else "fold",
            max_width=cut_width if name == shrink_column else None,
        )
    for row in rows:
        table.add_row(*row)
    console.print(table)


def format_csv(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Return a table as CSV; cells that a spreadsheet would run as a formula are escaped."""
    from ladderboard.files import escape_formula  # noqa: PLC0415 - keeps --help fast

    out = io.StringIO(newline="")
    write = csv.writer(out, lineterminator="\n")
    write.writerow(head)
    for row in rows:
        write.writerow(
            [escape_formula(cell) if isinstance(cell, str) else _format_cell(cell) for cell in row]
        )
    return out.getvalue()


def _format_cell(value: object) -> object:
    return ("yes" if value else "no") if isinstance(value, bool) else value


@contextmanager
def verification_progress(*, quiet: bool) -> Iterator[Callable[[int, int | None], object] | None]:
    """Yield a callback for (checked, total) entries, or None when stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only for a terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (TextColumn("Checking"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def upload_progress(*, quiet: bool) -> Iterator[Callable[[int, int], object] | None]:
    """Yield a callback for (sent, total) bytes, or None when stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only for a terminal
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Sending", total=None)

        def show(sent: int, total: int) -> None:
            label = "Sending" if sent < total else "Waiting for the answer"
            bar.update(task, completed=sent, total=total, description=label, refresh=sent == total)

        yield show


def program_command() -> str:
    """Return how to start this program from a shell in the current directory."""
    started = Path(sys.argv[0])
    if started.stem != "ladderboard" or not started.exists():
        return f"{python_command()} -m ladderboard"
    on_path = shutil.which("ladderboard")
    if on_path is not None and Path(on_path).resolve() == started.resolve():
        return "ladderboard"
    return shlex.quote(str(relative_to_cwd(started)))


def python_command() -> str:
    """Return how to start this interpreter, with the packages installed for it, from a shell."""
    executable = Path(sys.executable)
    on_path = shutil.which("python")
    # Not resolved: a virtual environment's interpreter is a link to one without its packages.
    return "python" if on_path == str(executable) else shlex.quote(str(relative_to_cwd(executable)))


def relative_to_cwd(path: Path) -> Path:
    """Return a path relative to the current directory if it lies below it, else an absolute one."""
    absolute = Path(os.path.normpath(path.absolute()))  # without following links
    cwd = Path.cwd()
    return absolute.relative_to(cwd) if absolute.is_relative_to(cwd) else absolute
