"""Where a passphrase comes from: a file, the environment or a person, never the command line.

What stands on a command line is seen by everybody on the machine, and kept in a shell's history.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ladderboard.errors import InvalidSetting

__all__ = ["PASSPHRASE", "PassphraseFile", "PublicKey", "find_passphrase"]

PASSPHRASE = "LADDERBOARD_PASSPHRASE"  # noqa: S105 - where it is found
_LONGEST = 4096

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="A file with the passphrase on its first line; LADDERBOARD_PASSPHRASE, or a question, "
        "if left out.",
    ),
]

PublicKey = Annotated[  # in place of one
    str | None,
    typer.Option(
        metavar="KEY", help="Encrypt to a public key, or one in a file; see board keygen."
    ),
]


def find_passphrase(file: Path | None = None, *, new: bool = False) -> str:
    """Return the first line of a file, what the environment says, or what a person types.

    A ``new`` one is asked for twice.
    """
    if file is not None:
        return _first_line(file)
    if PASSPHRASE in os.environ:
        return os.environ[PASSPHRASE]
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidSetting(
            "A passphrase is needed, and nobody is here to type it: put it into a file and name "
            f"that with --passphrase-file, or into {PASSPHRASE}."
        )
    typed: str = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=new, err=True)
    return typed


def _first_line(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            held = opened.read(_LONGEST + 1)
    except OSError as error:
        raise InvalidSetting(f"{file} cannot be read: {error.strerror}.") from None
    try:
        words = held.partition(b"\n")[0].removesuffix(b"\r").decode()
    except ValueError:
        words = ""
    if not words or len(held) > _LONGEST:
        raise InvalidSetting(f"{file} must hold a passphrase on its first line, and be short.")
    return words
