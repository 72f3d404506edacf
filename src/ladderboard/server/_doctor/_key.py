"""The key file: whether it is there, private, and the one that the database was made with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ladderboard.board import SERVER
from ladderboard.errors import LadderboardError, MissingDependency, WrongKey
from ladderboard.holdout import read_key_file
from ladderboard.ledger import Cipher, NoSeal
from ladderboard.server._doctor._files import others
from ladderboard.server._doctor._finding import note, ok, problem

if TYPE_CHECKING:
    from pathlib import Path

    from ladderboard.server._doctor._finding import Finding

__all__ = ["check_key"]

_ABOUT = "key file"
_PLACE = "kept signing key"
_BACK = "Put it back from where its copy is kept: without it nobody can go on."


def check_key(key_file: Path | None, sealed: bytes | None, database: Path | None) -> list[Finding]:
    """Look at the key file; ``sealed`` is what it must open, None where there is nothing yet."""
    if key_file is None:
        return [_without(sealed)]
    if key_file.exists():
        wrong = _opened(key_file, sealed)
        return _kept(key_file, sealed, database) if wrong is None else [wrong]
    if sealed is None:
        return [note(_ABOUT, f"There is no key file {key_file} yet; it is made with the database.")]
    return [problem(_ABOUT, f"There is no key file {key_file}.", _BACK)]


def _opened(key_file: Path, sealed: bytes | None) -> Finding | None:
    """Try a key file on what it must open; None if it is the right one."""
    try:
        key = read_key_file(key_file)
        if sealed is not None:
            Cipher(key, SERVER).open(_PLACE, sealed)
    except MissingDependency as error:
        return problem(_ABOUT, str(error), "pip install 'ladderboard[guard]'")
    except WrongKey as error:
        return problem(_ABOUT, f"{key_file}: {error}", "Give the one that belongs to it.")
    except LadderboardError as error:
        return problem(_ABOUT, str(error), _BACK)
    return None


def _kept(key_file: Path, sealed: bytes | None, database: Path | None) -> list[Finding]:
    """Look where a key file lies, and who may read it."""
    who = others(key_file)
    if who == "anybody":
        said = f"Anybody on this machine may read the key file {key_file}."
        return [problem(_ABOUT, said, f"chmod 600 {key_file}")]
    fits = "" if sealed is None else " and fits the database"
    found = [ok(_ABOUT, f"{key_file} is there{fits}.")]
    if who:
        do = f"If that is not meant: chmod 600 {key_file}"
        found.append(note(_ABOUT, "Its group may read it.", do))
    if database is not None and _together(key_file, database):
        said = "It lies beside the database: whoever takes the one takes the other."
        found.append(note(_ABOUT, said, "Keep it in another folder, better on another disk."))
    return found


def _without(sealed: bytes | None) -> Finding:
    if sealed is None:
        return note(_ABOUT, "None is set: what is secret will not be encrypted.")
    try:
        NoSeal().open(_PLACE, sealed)
    except LadderboardError as error:
        return problem(_ABOUT, str(error), "Name it: --key-file, LADDERBOARD_KEY_FILE or key_file.")
    return note(_ABOUT, "There is none: whoever can read the database can read the labels.")


def _together(key_file: Path, database: Path) -> bool:
    return os.path.realpath(key_file.parent) == os.path.realpath(database.parent)
