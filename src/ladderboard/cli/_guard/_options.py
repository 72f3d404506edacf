"""What the verbs of the guard have in common: options, and how a guard is opened."""

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
        help="The guard's file; or where one is served: http://127.0.0.1:8765, unix:/path.",
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The key file, where the secret side is encrypted."),
]

_SCHEMES = ("http://", "https://", "unix:")


def is_url(file: str) -> bool:
    """Return whether a guard is served elsewhere rather than a file here."""
    return file.startswith(_SCHEMES)


@contextmanager
def open_guard(file: str, key_file: Path | None = None) -> "Iterator[Holdout | Any]":
    """Open the guard in a file, or the one that is served at a URL, and let go of it at the end."""
    with closing(_open(file, key_file)) as guard:
        yield guard


def _open(file: str, key_file: Path | None) -> "Holdout | Any":
    from ladderboard.holdout import Holdout  # noqa: PLC0415 - keeps --help fast

    if is_url(file):
        if key_file is not None:
            raise InvalidSetting("A guard that is served has its key itself; leave --key-file out.")
        return Holdout.connect(file)  # which finds the token that is for it
    require_guard_file(file)
    return Holdout.open(file, key_file=key_file)


def require_guard_file(file: str) -> None:
    """Refuse what cannot be a guard's file, with what to type."""
    path = Path(file)
    if is_url(file):
        raise InvalidSetting("This verb needs the guard's file itself, on the machine where it is.")
    if not path.exists():
        raise InvalidSetting(
            f"There is no file {path}. A guard is made with: ladderboard guard create {path} "
            "--labels LABELS.csv --questions K"
        )
    if path.is_dir():
        raise InvalidSetting(f"{path} is a directory; a guard is one file.")
    if any(os.path.lexists(f"{file}{end}") for end in ("-wal", "-journal")):
        # Here nothing has opened the file yet, so that it can be looked at without its log.
        from ladderboard.holdout import refuse_strange_log  # noqa: PLC0415 - seldom

        refuse_strange_log(path)
