"""A doctor: looks at everything that a server needs, changes nothing, and says what to do.

Every check is a function that returns findings, one file a topic. Nothing here needs an extra.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ladderboard.server._config._address import file_of
from ladderboard.server._doctor._clock import check_clock
from ladderboard.server._doctor._disk import check_disk, size_of
from ladderboard.server._doctor._extras import EXTRAS, Extra, check_extras
from ladderboard.server._doctor._finding import Finding, problem
from ladderboard.server._doctor._key import check_key
from ladderboard.server._doctor._machine import check_descriptors, check_port
from ladderboard.server._doctor._postgres import Told, check_postgres
from ladderboard.server._doctor._program import check_program, check_server
from ladderboard.server._doctor._settings import check_settings
from ladderboard.server._doctor._sqlite import check_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.server._config import Found

__all__ = ["EXTRAS", "Extra", "Finding", "examine"]


def examine(
    config: Path | None = None, *, database: str | None = None, key_file: Path | None = None
) -> Iterator[Finding]:
    """Look at everything, one finding after another.

    It makes no database and brings none up to date. Not for a process that serves: it looks into
    the database's file beside whoever has it open.
    """
    yield from check_program()
    yield from check_extras()
    yield from check_server()
    said, found = check_settings(config, {"database": database, "key_file": key_file})
    yield from said
    if found is not None:
        yield from _places(found)
        yield from check_port(found["serve.host"], found["serve.port"])
    yield from check_descriptors()


def _places(found: Found) -> Iterator[Finding]:
    """Look at database, key file, disks and clock."""
    address: str = found["database"]
    file = file_of(address)
    path = None if file is None else Path(file).absolute()
    try:
        said, seen, ahead = _database(address, path, found)
    except OSError as error:
        said, seen, ahead = [_unseen("database", error)], None, None
    yield from said
    try:
        yield from check_key(found["key_file"], None if seen is None else seen.sealed, path)
    except OSError as error:
        yield _unseen("key file", error)
    try:
        yield from _disks(found, path)
    except OSError as error:
        yield _unseen("disk", error)
    yield from check_clock(None if seen is None else seen.newest, ahead)


def _unseen(about: str, error: OSError) -> Finding:
    said = f"{error.filename or 'It'} cannot be looked at: {error.strerror}."
    return problem(about, said, "Run this as the user who serves.")


def _database(address: str, path: Path | None, found: Found) -> Told:
    if path is not None:
        return Told(*check_file(path))
    if address.startswith("postgres"):
        return check_postgres(address, found["serve.workers"] * found["serve.threads"])
    scheme = address.partition("://")[0]
    said = f"It is at {scheme}://..., which nobody here can open."
    return Told([problem("database", said, "Give a file, or postgresql+psycopg://user@host/name")])


def _disks(found: Found, path: Path | None) -> Iterator[Finding]:
    if path is not None:
        yield check_disk("disk of the database", path.parent, size_of(path))
    for name in ("spool", "trials"):
        if found[f"serve.{name}"] is not None:
            yield check_disk(f"disk of the {name}", found[f"serve.{name}"].absolute())
    try:
        folder = Path(tempfile.gettempdir())
    except OSError:
        said = "There is no folder for them that can be written."
        yield problem("temporary files", said, "Make room in /tmp, or set TMPDIR to another one.")
        return
    yield check_disk("temporary files", folder)
