"""A database in an SQLite file: whether it is there, ours, up to date, writable, and private."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from ladderboard.errors import LadderboardError
from ladderboard.server._doctor._files import may_write, others
from ladderboard.server._doctor._finding import note, ok, problem
from ladderboard.server._doctor._look import is_left, look_into_file, see

if TYPE_CHECKING:
    from pathlib import Path

    from ladderboard.server._doctor._finding import Finding
    from ladderboard.server._doctor._look import Seen

__all__ = ["check_file", "formatted"]

_ABOUT = "database"
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"


def check_file(path: Path) -> tuple[list[Finding], Seen | None]:
    """Look at a file, and into it."""
    if path.is_dir():
        said = problem(_ABOUT, f"{path} is a directory.", "A database is one file: name that.")
        return [said], None
    if not path.parent.is_dir():
        make = f"mkdir -m 700 {path.parent}"
        return [problem(_ABOUT, f"There is no directory {path.parent} for it.", make)], None
    if not path.exists():
        said = note(
            _ABOUT,
            f"There is no file {path} yet.",
            "ladderboard serve DIR or ladderboard board create DIR makes it; if there should be "
            "one, look at ladderboard settings for where it is looked for",
        )
        return [said, *_writable(path)], None
    try:
        with look_into_file(path) as run:
            version = run("PRAGMA user_version")[0][0]
            seen = see(run, version, {row[0] for row in run(_TABLES)}, str(path))
    except LadderboardError as error:
        if is_left(path):  # all of it may be in the log
            return [_left(path), *_writable(path), _private(path)], None
        return [problem(_ABOUT, str(error), "Restore it from a backup.")], None
    left = [_left(path)] if is_left(path) else []
    return [formatted(seen, str(path)), *left, *_writable(path), _private(path)], seen


def _left(path: Path) -> Finding:
    said = f"{path} was not closed: the machine stopped. Its log may hold more than was looked at."
    return note(_ABOUT, said, "Nothing: whoever opens it next goes on from the log.")


def formatted(seen: Seen, where: str) -> Finding:
    """Say which format a database is in, and what will become of it."""
    if seen.ahead:
        return problem(
            _ABOUT,
            f"{where} was written by a newer Ladderboard.",
            "Install that version again, or restore what was copied before it was brought up to "
            "date.",
        )
    boards = f"{seen.boards:,} board{'' if seen.boards == 1 else 's'}"
    if seen.behind:
        return note(
            _ABOUT,
            f"{where} has {boards}, in format {seen.version}, which is an old one.",
            "Nothing: whoever opens it next brings it up to date, after copying it.",
        )
    return ok(_ABOUT, f"{where} has {boards}, in format {seen.version}.")


def _writable(path: Path) -> list[Finding]:
    """Tell whether we could write the file and, beside it, its log."""
    beside = [path.with_name(path.name + end) for end in ("", "-wal", "-shm")]
    closed = [each for each in (path.parent, *beside) if each.exists() and not may_write(each)]
    if not closed:
        return [ok("writing", f"{path} and its folder may be written by this user.")]
    return [
        problem(
            "writing",
            f"{closed[0]} may not be written by this user (number {_user()}), or the disk is "
            "mounted read-only.",
            "Run this as the user who serves; else give it to that user: chown, chmod u+rw, or "
            "mount -o remount,rw",
        )
    ]


def _user() -> str:
    return str(os.geteuid()) if hasattr(os, "geteuid") else "?"


def _private(path: Path) -> Finding:
    """Tell whether others may read the file, or put another in its place."""
    about = "privacy"
    folder = path.parent.stat().st_mode
    if os.name == "posix" and folder & 0o002 and not folder & stat.S_ISVTX:
        return problem(
            about,
            f"Anybody may put files into {path.parent}, and with them another database.",
            f"chmod o-w {path.parent}",
        )
    beside = [path.with_name(path.name + end) for end in ("", "-wal")]
    for each in beside:
        who = others(each) if each.exists() else ""
        if who == "anybody":
            said = f"Anybody on this machine may open {each}: labels, tokens' hashes, submissions."
            return problem(about, said, f"chmod 600 {each}")
        if who:
            do = f"If that is not meant: chmod 600 {each}"
            return note(about, f"The group of {each} may open it.", do)
    return ok(about, f"Only its owner may open {path}.")
