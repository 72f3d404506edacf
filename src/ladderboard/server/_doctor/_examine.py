"""All checks in their order, and those of the settings."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.errors import InvalidSetting
from ladderboard.server._config import find_settings, sqlite_path, unknown_variables
from ladderboard.server._doctor._database import (
    DatabaseCheck,
    check_key,
    check_postgres,
    check_sqlite,
)
from ladderboard.server._doctor._finding import Finding, note, ok, other_readers, problem
from ladderboard.server._doctor._machine import (
    check_clock,
    check_descriptors,
    check_disk,
    check_extras,
    check_port,
    check_program,
    check_server,
    database_size,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ladderboard.server._config import ResolvedSettings

_ABOUT = "settings"


def check_installation(
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
        yield from _check_storage(found)
        yield from check_port(found["serve.host"], found["serve.port"])
    yield from check_descriptors()


def _check_storage(found: ResolvedSettings) -> Iterator[Finding]:
    """Look at database, key file, disks and clock."""
    address: str = found["database"]
    file = sqlite_path(address)
    path = None if file is None else Path(file).absolute()
    try:
        said, seen, ahead = _check_database(address, path, found)
    except OSError as error:
        said, seen, ahead = [_cannot_inspect("database", error)], None, None
    yield from said
    try:
        yield from check_key(found["key_file"], None if seen is None else seen.sealed, path)
    except OSError as error:
        yield _cannot_inspect("key file", error)
    try:
        yield from _check_disks(found, path)
    except OSError as error:
        yield _cannot_inspect("disk", error)
    yield from check_clock(None if seen is None else seen.newest, ahead)


def _cannot_inspect(about: str, error: OSError) -> Finding:
    said = f"{error.filename or 'It'} cannot be looked at: {error.strerror}."
    return problem(about, said, "Run this as the user who serves.")


def _check_database(address: str, path: Path | None, found: ResolvedSettings) -> DatabaseCheck:
    if path is not None:
        return DatabaseCheck(*check_sqlite(path))
    if address.startswith("postgres"):
        return check_postgres(address, found["serve.workers"] * found["serve.threads"])
    scheme = address.partition("://")[0]
    said = f"Unsupported database URL: {scheme}://..."
    return DatabaseCheck(
        [problem("database", said, "Give a file, or postgresql+psycopg://user@host/name")]
    )


def _check_disks(found: ResolvedSettings, path: Path | None) -> Iterator[Finding]:
    if path is not None:
        yield check_disk("disk of the database", path.parent, database_size(path))
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


def check_settings(
    config: Path | None, given: Mapping[str, Any]
) -> tuple[list[Finding], ResolvedSettings | None]:
    """Read the settings; None where they cannot be understood."""
    said = [note(_ABOUT, each) for each in unknown_variables(os.environ)]
    try:
        found = find_settings(config, given)
        found.metrics_token()
    except InvalidSetting as error:
        do = "Correct that; ladderboard settings tells what there is to set."
        # Whoever names a database wants it looked at, whatever the rest is.
        rest = find_settings(None, given, environment={}) if given.get("database") else None
        return [problem(_ABOUT, str(error), do), *said], rest
    said = [*_check_workers(found), *_check_token_file(found), *said]
    if found.file is None:
        alone = "There is no settings file; the environment and defaults count."
        return [ok(_ABOUT, alone), *said], found
    return [
        ok(_ABOUT, f"{found.file} can be read."),
        *_check_settings_file(found.file),
        *said,
    ], found


def _check_workers(found: ResolvedSettings) -> list[Finding]:
    """Look at what each may be alone, but not with the other."""
    if found["serve.workers"] == 1 or sqlite_path(found["database"]) is None:
        return []
    said = f"serve.workers is {found['serve.workers']}, and one process alone serves from SQLite."
    return [problem(_ABOUT, said, "Set it to 1, or serve from PostgreSQL.")]


def _check_token_file(found: ResolvedSettings) -> list[Finding]:
    token: Path | None = found["serve.metrics_token_file"]
    if token is None or other_readers(token) != "anybody":
        return []
    said = f"Anybody on this machine may read the token in {token}."
    return [note(_ABOUT, said, f"If that is not meant: chmod o-r {token}")]


def _check_settings_file(file: Path) -> list[Finding]:
    """Look who else than us may change a file; that anybody may was refused."""
    said, owner = [], file.stat().st_uid
    if hasattr(os, "geteuid") and owner not in {0, os.geteuid()}:
        who = f"{file} belongs to another user, number {owner}, who may change it."
        said.append(note(_ABOUT, who, f"If that is not meant: chown root {file}"))
    if other_readers(file) and file.stat().st_mode & 0o020:
        do = f"If that is not meant: chmod g-w {file}"
        said.append(note(_ABOUT, f"The group of {file} may change it.", do))
    return said
