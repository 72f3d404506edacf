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
_TIME_SUFFIX = "(UTC)"  # how the heads of times end
_COLUMN_GAP = 2  # characters between columns
_MIN_CUT_WIDTH = 12  # characters for the column that is cut

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


def echo_err(*lines: str) -> None:
    """Print lines on stderr, where stdout holds one thing alone, for a shell to take."""
    for line in lines:
        print(printable(line), file=sys.stderr)  # noqa: T201


def echo_secret(what: str, secret: str) -> None:
    """Print something that is told once, alone on stdout; what it is goes to stderr."""
    if sys.stdout.isatty():
        echo_err(f"{what}, which is not shown again:")
    else:
        echo_err(f"{what} went to standard output and is not shown again.")
    echo(secret)


def echo_json(content: dict[str, Any]) -> None:
    """Print one JSON object: ASCII, on one line."""
    echo(json.dumps(content, allow_nan=False))


def echo_json_error(
    code: str, message: str, problems: tuple[Problem, ...] = (), **more: Any
) -> None:
    """Tell a machine what was refused and why."""
    listed = [{**vars(problem), "ids": list(problem.ids)} for problem in problems]
    echo_json({"error": {"code": code, "message": message, "problems": listed, **more}})


def exit_with_error(error: LadderboardError, code: int = 2, *, as_json: bool = False) -> NoReturn:
    """Say what was refused and why, and exit: to a person on stderr, one line for each problem."""
    problems = error.problems if isinstance(error, InvalidInput) else ()
    if as_json:
        # Subclasses outside errors.py have the code of the exported class above them.
        exported = next(
            base for base in type(error).__mro__ if base.__module__ == errors.__name__
        ).__name__
        name = _JSON_CODES.get(exported) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", exported).lower()
        more = {"entry": error.entry} if isinstance(error, BrokenLedger) else {}
        echo_json_error(name, str(error), problems, **more)
    else:
        lines = str(error).splitlines() if len(problems) > 1 else [" ".join(str(error).split())]
        print("ladderboard:", "\n".join(map(printable, lines)), file=sys.stderr)  # noqa: T201
    sys.exit(code)


def terminal_width() -> int:
    """Return how wide to write: the terminal, within reason; 80 in a pipe."""
    return min(max(shutil.get_terminal_size().columns, _MIN_WIDTH), _MAX_WIDTH)


def wrap_lines(text: str, *, indent: str = "", first: str | None = None) -> list[str]:
    """Return a sentence in lines that fit; nothing is broken that has no spaces."""
    return textwrap.wrap(
        printable(text),
        terminal_width(),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def format_minute(moment: str | None) -> str | None:
    """Return a time as a table shows it, in UTC and to the minute.

    >>> format_minute("2027-01-31T23:59:59Z")
    '2027-01-31 23:59'
    """
    return None if moment is None else f"{moment[:10]} {moment[11:16]}"


def echo_table(
    head: tuple[str, ...],
    rows: list[tuple[object, ...]],
    *,
    right: tuple[str, ...] = (),
    cut: str = "",
) -> None:
    """Print rows under a head; the columns named in ``right`` end together, as numbers do.

    On a terminal the column ``cut`` gets what room the others leave it. Cells may come from
    anybody: what a terminal would obey is escaped.
    """
    head = tuple(map(printable, head))
    cells = [tuple("-" if each is None else printable(each) for each in row) for row in rows]
    numbers = {at for at, name in enumerate(head) if name in right}
    if sys.stdout.isatty():
        _draw_table(head, cells, numbers, cut)
        return
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for row in (head, *cells):
        told = [
            each.rjust(width) if at in numbers else each.ljust(width)
            for at, (each, width) in enumerate(zip(row, widths, strict=True))
        ]
        echo("  ".join(told).rstrip())


def _draw_table(
    head: tuple[str, ...], rows: list[tuple[str, ...]], numbers: set[int], cut: str
) -> None:
    from rich import cells  # noqa: PLC0415 - only where there is a terminal
    from rich.box import SIMPLE  # noqa: PLC0415 - only where there is a terminal
    from rich.console import Console  # noqa: PLC0415 - same
    from rich.table import Table  # noqa: PLC0415 - same

    console = Console(highlight=False, markup=False)
    widths = [max(map(cells.cell_len, column)) for column in zip(head, *rows, strict=True)]
    others = sum(width for name, width in zip(head, widths, strict=True) if name != cut)
    room = max(console.width - others - _COLUMN_GAP * len(head), _MIN_CUT_WIDTH)
    table = Table(box=SIMPLE, pad_edge=False)
    for at, name in enumerate(head):
        # What is copied or compared stays in one piece, and so do times.
        whole = at == 0 or at in numbers or name.endswith(_TIME_SUFFIX)
        table.add_column(
            name,
            justify="right" if at in numbers else "left",
            no_wrap=whole or name == cut,
            overflow="ellipsis" if name == cut else "fold",
            max_width=room if name == cut else None,
        )
    for row in rows:
        table.add_row(*row)
    console.print(table)


def format_csv(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Return rows under a head, as spreadsheets read them; text from outside stays text there."""
    from ladderboard.files import plain_cell  # noqa: PLC0415 - the help must not wait

    out = io.StringIO(newline="")
    write = csv.writer(out, lineterminator="\n")
    write.writerow(head)
    for row in rows:
        write.writerow(
            [plain_cell(each) if isinstance(each, str) else _format_cell(each) for each in row]
        )
    return out.getvalue()


def _format_cell(value: object) -> object:
    return ("yes" if value else "no") if isinstance(value, bool) else value


@contextmanager
def verification_progress(*, quiet: bool) -> Iterator[Callable[[int, int | None], object] | None]:
    """Give what hears how many entries of how many were checked; None where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only where there is a terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (TextColumn("Checking"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


@contextmanager
def upload_progress(*, quiet: bool) -> Iterator[Callable[[int, int], object] | None]:
    """Give what hears how many bytes of how many were sent; None where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only where there is a terminal
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Sending", total=None)

        def show(sent: int, total: int) -> None:
            said = "Sending" if sent < total else "Waiting for the answer"
            bar.update(task, completed=sent, total=total, description=said, refresh=sent == total)

        yield show


def program_command() -> str:
    """Return how to call this very program from a shell in this directory."""
    started = Path(sys.argv[0])
    if started.stem != "ladderboard" or not started.exists():
        return f"{python_command()} -m ladderboard"
    found = shutil.which("ladderboard")
    if found is not None and Path(found).resolve() == started.resolve():
        return "ladderboard"
    return shlex.quote(str(relative_to_cwd(started)))


def python_command() -> str:
    """Return the interpreter that has what we have."""
    here = Path(sys.executable)
    found = shutil.which("python")
    # Not resolved: an environment's interpreter is a link to one that has nothing installed.
    return "python" if found == str(here) else shlex.quote(str(relative_to_cwd(here)))


def relative_to_cwd(path: Path) -> Path:
    """Return a path from here, if it lies below."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed
    here = Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole
