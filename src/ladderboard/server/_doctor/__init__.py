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
from ladderboard.server._doctor._postgres import check_postgres
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
    path, ahead = None if file is None else Path(file).absolute(), None
    if path is not None:
        said, seen = check_file(path)
        yield from said
    elif address.startswith("postgres"):
        wanted = found["serve.workers"] * found["serve.threads"]
        said, seen, ahead = check_postgres(address, wanted)
        yield from said
    else:
        scheme = address.partition("://")[0]
        yield problem(
            "database",
            f"It is at {scheme}://..., which nobody here can open.",
            "Give a file, or postgresql+psycopg://user@host/name",
        )
        return
    yield from check_key(found["key_file"], None if seen is None else seen.sealed, path)
    yield from _disks(found, path)
    yield from check_clock(None if seen is None else seen.newest, ahead)


def _disks(found: Found, path: Path | None) -> Iterator[Finding]:
    folders: dict[str, Path] = {}
    if path is not None:
        yield check_disk("disk of the database", path.parent, size_of(path))
    if found["serve.spool"] is not None:
        folders["disk of the spool"] = found["serve.spool"]
    if found["serve.trials"] is not None:
        folders["disk of trials"] = found["serve.trials"]
    try:
        folders["temporary files"] = Path(tempfile.gettempdir())
    except OSError:
        said = "There is no folder for them that can be written."
        yield problem(
            "temporary files", said, "Make room in /tmp, or set TMPDIR to another folder."
        )
    for about, folder in folders.items():
        yield check_disk(about, folder.absolute())
