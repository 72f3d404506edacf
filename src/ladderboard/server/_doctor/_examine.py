"""All checks in order, and the checks of the settings."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.errors import InvalidSetting
from ladderboard.server._doctor._database import (
    check_key,
    check_postgres,
    check_sqlite,
)
from ladderboard.server._doctor._finding import Finding, note, ok, problem
from ladderboard.server._doctor._machine import (
    check_disk,
    check_port,
    check_program,
    database_size,
)
from ladderboard.server._settings import find_settings, sqlite_path, unknown_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ladderboard.server._doctor._database import DatabaseState
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
    findings, settings = check_settings(config, {"database": database, "key_file": key_file})
    yield from findings
    if settings is not None:
        yield from _check_storage(settings)
        yield from check_port(settings["serve.host"], settings["serve.port"])


def _check_storage(settings: ResolvedSettings) -> Iterator[Finding]:
    """Check the database, key file and disks."""
    address: str = settings["database"]
    file = sqlite_path(address)
    path = None if file is None else Path(file).absolute()
    try:
        findings, state = _check_database(address, path, settings)
    except OSError as error:
        findings, state = [_cannot_inspect("database", error)], None
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


def _cannot_inspect(subject: str, error: OSError) -> Finding:
    message = f"{error.filename or 'It'} cannot be checked: {error.strerror}."
    return problem(subject, message, "Run this as the server's user.")


def _check_database(
    address: str, path: Path | None, settings: ResolvedSettings
) -> tuple[list[Finding], DatabaseState | None]:
    if path is not None:
        return check_sqlite(path)
    if address.startswith("postgres"):
        return check_postgres(address, settings["serve.workers"] * settings["serve.threads"])
    message = f"Unsupported database URL: {address.partition('://')[0]}://..."
    remedy = "Give a file, or postgresql+psycopg://user@host/name"
    return [problem("database", message, remedy)], None


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
    message = "No settings file: the environment and the defaults apply."
    if settings.file is not None:
        message = f"{settings.file} can be read."
    return [ok(_SUBJECT, message), *_check_workers(settings), *findings], settings


def _check_workers(settings: ResolvedSettings) -> list[Finding]:
    """Check that several workers do not share an SQLite file."""
    if settings["serve.workers"] == 1 or sqlite_path(settings["database"]) is None:
        return []
    message = f"serve.workers is {settings['serve.workers']}, but SQLite allows one process."
    return [problem(_SUBJECT, message, "Set it to 1, or serve from PostgreSQL.")]
