"""All checks in order, and the checks of the settings."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.errors import InvalidSetting
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
from ladderboard.server._settings import find_settings, sqlite_path, unknown_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ladderboard.server._settings import ResolvedSettings

_SUBJECT = "settings"


def check_installation(
    config: Path | None = None, *, database: str | None = None, key_file: Path | None = None
) -> Iterator[Finding]:
    """Check everything that a server needs; yield one finding after another.

    Creates and migrates no database. Not for a process that serves: it opens the database's file
    a second time.
    """
    yield from check_program()
    yield from check_extras()
    yield from check_server()
    findings, settings = check_settings(config, {"database": database, "key_file": key_file})
    yield from findings
    if settings is not None:
        yield from _check_storage(settings)
        yield from check_port(settings["serve.host"], settings["serve.port"])
    yield from check_descriptors()


def _check_storage(settings: ResolvedSettings) -> Iterator[Finding]:
    """Check the database, key file, disks and clock."""
    address: str = settings["database"]
    file = sqlite_path(address)
    path = None if file is None else Path(file).absolute()
    try:
        findings, state, ahead = _check_database(address, path, settings)
    except OSError as error:
        findings, state, ahead = [_cannot_inspect("database", error)], None, None
    yield from findings
    try:
        yield from check_key(
            settings["key_file"], None if state is None else state.encrypted_value, path
        )
    except OSError as error:
        yield _cannot_inspect("key file", error)
    try:
        yield from _check_disks(settings, path)
    except OSError as error:
        yield _cannot_inspect("disk", error)
    yield from check_clock(None if state is None else state.newest, ahead)


def _cannot_inspect(subject: str, error: OSError) -> Finding:
    message = f"{error.filename or 'It'} cannot be checked: {error.strerror}."
    return problem(subject, message, "Run this as the server's user.")


def _check_database(address: str, path: Path | None, settings: ResolvedSettings) -> DatabaseCheck:
    if path is not None:
        return DatabaseCheck(*check_sqlite(path))
    if address.startswith("postgres"):
        return check_postgres(address, settings["serve.workers"] * settings["serve.threads"])
    scheme = address.partition("://")[0]
    message = f"Unsupported database URL: {scheme}://..."
    return DatabaseCheck(
        [problem("database", message, "Give a file, or postgresql+psycopg://user@host/name")]
    )


def _check_disks(settings: ResolvedSettings, path: Path | None) -> Iterator[Finding]:
    if path is not None:
        yield check_disk("disk of the database", path.parent, database_size(path))
    if settings["serve.spool"] is not None:
        yield check_disk("disk of the spool", settings["serve.spool"].absolute())
    try:
        folder = Path(tempfile.gettempdir())
    except OSError:
        message = "No folder for them can be written."
        yield problem(
            "temporary files", message, "Free space in /tmp, or set TMPDIR to another folder."
        )
        return
    yield check_disk("temporary files", folder)


def check_settings(
    config: Path | None, overrides: Mapping[str, Any]
) -> tuple[list[Finding], ResolvedSettings | None]:
    """Check the settings and return them; None if they are invalid."""
    findings = [note(_SUBJECT, message) for message in unknown_variables(os.environ)]
    try:
        settings = find_settings(config, overrides)
        settings.settings.with_metrics_token()
    except InvalidSetting as error:
        remedy = "Correct it; ladderboard settings lists all settings."
        # A database named on the command line is checked all the same.
        partial = (
            find_settings(None, overrides, environment={}) if overrides.get("database") else None
        )
        return [problem(_SUBJECT, str(error), remedy), *findings], partial
    findings = [*_check_workers(settings), *_check_token_file(settings), *findings]
    if settings.file is None:
        message = "No settings file: the environment and the defaults apply."
        return [ok(_SUBJECT, message), *findings], settings
    return [
        ok(_SUBJECT, f"{settings.file} can be read."),
        *_check_settings_file(settings.file),
        *findings,
    ], settings


def _check_workers(settings: ResolvedSettings) -> list[Finding]:
    """Check that several workers do not share an SQLite file."""
    if settings["serve.workers"] == 1 or sqlite_path(settings["database"]) is None:
        return []
    message = f"serve.workers is {settings['serve.workers']}, but SQLite allows one process."
    return [problem(_SUBJECT, message, "Set it to 1, or serve from PostgreSQL.")]


def _check_token_file(settings: ResolvedSettings) -> list[Finding]:
    token: Path | None = settings["serve.metrics_token_file"]
    if token is None or other_readers(token) != "anybody":
        return []
    message = f"Anybody on this machine may read the token in {token}."
    return [note(_SUBJECT, message, f"If that is not intended: chmod o-r {token}")]


def _check_settings_file(file: Path) -> list[Finding]:
    """Check who else may change the settings file; a world-writable one was refused before."""
    findings, owner = [], file.stat().st_uid
    if hasattr(os, "geteuid") and owner not in {0, os.geteuid()}:
        message = f"{file} belongs to another user, number {owner}, who may change it."
        findings.append(note(_SUBJECT, message, f"If that is not intended: chown root {file}"))
    if other_readers(file) and file.stat().st_mode & 0o020:
        remedy = f"If that is not intended: chmod g-w {file}"
        findings.append(note(_SUBJECT, f"The group of {file} may change it.", remedy))
    return findings
