"""Shared by the commands of guards: options, and opening a guard."""

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard.cli._holdout_files import is_url, require_guard_file
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.holdout import Holdout

FileOrUrl = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="The guard's file; or a served guard, as http://127.0.0.1:8765 or unix:/path.",
    ),
]


@contextmanager
def open_guard(file: str, key_file: Path | None = None) -> "Iterator[Holdout | Any]":
    """Open the guard in a file, or connect to a served one, and close it at the end."""
    with closing(_open(file, key_file)) as guard:
        yield guard


def _open(file: str, key_file: Path | None) -> "Holdout | Any":
    from ladderboard.holdout import Holdout  # noqa: PLC0415 - keeps --help fast

    if is_url(file):
        if key_file is not None:
            raise InvalidSetting("A served guard has its key itself; leave out --key-file.")
        return Holdout.connect(file)  # finds the token by itself
    require_guard_file(file)
    return Holdout.open(file, key_file=key_file)
