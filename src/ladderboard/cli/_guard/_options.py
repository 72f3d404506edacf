"""Shared by the commands of guards: options, and opening a guard."""

import os
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.holdout import Holdout

File = Annotated[str, typer.Argument(metavar="FILE", help="The guard's file.")]
FileOrUrl = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="The guard's file; or a served guard, as http://127.0.0.1:8765 or unix:/path.",
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The key file, if the secret side is encrypted."),
]

_SCHEMES = ("http://", "https://", "unix:")


def is_url(file: str) -> bool:
    """Return whether this is the address of a served guard rather than a file."""
    return file.startswith(_SCHEMES)


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


def require_guard_file(file: str) -> None:
    """Raise if this is not a guard's file; the message says what to do."""
    path = Path(file)
    if is_url(file):
        raise InvalidSetting("This command needs the guard's file, on the machine where it is.")
    if not path.exists():
        raise InvalidSetting(
            f"There is no file {path}. Create a guard with: ladderboard guard create {path} "
            "--labels LABELS.csv --questions K"
        )
    if path.is_dir():
        raise InvalidSetting(f"{path} is a directory; a guard is one file.")
    if any(os.path.lexists(f"{file}{suffix}") for suffix in ("-wal", "-journal")):
        # Nothing has opened the file yet, so it can be inspected without its log.
        from ladderboard.holdout import refuse_foreign_wal  # noqa: PLC0415 - rarely needed

        refuse_foreign_wal(path)
