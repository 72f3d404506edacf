"""``ladderboard doctor``: versions, settings, database, key file, disks and port, all unchanged.

Every check is a function that returns findings.
"""

from __future__ import annotations

import errno
import glob
import ipaddress
import os
import platform
import re
import shutil
import socket
import sqlite3
import stat
import sys
import tempfile
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

from ladderboard._atomic_file import absolute_path
from ladderboard._formatting import format_count, format_size
from ladderboard._version import __version__
from ladderboard.board import (
    BOARD_SCHEMA,
    SERVER,
    count_boards,
    list_books,
    read_signing_key,
    waiting_slugs,
)
from ladderboard.errors import (
    InvalidSetting,
    InvalidState,
    LadderboardError,
    MissingDependency,
    StorageFailed,
    WrongKey,
)
from ladderboard.holdout import read_key_file
from ladderboard.ledger import (
    SQLITE_APPLICATION_ID,
    TABLE_NAMES,
    Cipher,
    HighWaterMark,
    NoEncryption,
    PostgresAddress,
    latest_format,
    load_psycopg,
    select_from,
    translate_sqlite_error,
)
from ladderboard.server._settings import find_settings, sqlite_path, unknown_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ladderboard.server._settings import ResolvedSettings

    Run = Callable[..., list[tuple[Any, ...]]]


class Finding(NamedTuple):
    """The result of one check: its subject, state and message, and a remedy if one is needed."""

    subject: str
    state: Literal["ok", "note", "problem"]
    message: str
    remedy: str | None = None

    def describe(self) -> dict[str, str | None]:
        """Return the finding as ``ladderboard doctor --json`` prints it."""
        return {
            "about": self.subject,
            "state": self.state,
            "said": self.message,
            "do": self.remedy,
        }


def ok(subject: str, message: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(subject, "ok", message)


def note(subject: str, message: str, remedy: str | None = None) -> Finding:
    """Return a finding that may need action."""
    return Finding(subject, "note", message, remedy)


def problem(subject: str, message: str, remedy: str) -> Finding:
    """Return a finding that needs action, with its remedy."""
    return Finding(subject, "problem", message, remedy)


def may_write(path: Path) -> bool:
    """Tell whether this user may write a file or folder; False on a read-only disk."""
    supported = os.access in os.supports_effective_ids
    return os.access(path, os.W_OK, effective_ids=supported)


def other_readers(path: Path) -> str:
    """Return who else may read or write a file: ``"anybody"``, ``"its group"`` or ``""``."""
    if os.name != "posix":
        return ""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        return "anybody"
    return "its group" if mode & (stat.S_IRGRP | stat.S_IWGRP) else ""


SCHEMA = "ladderboard"
_TIMEOUT_SECONDS = 5
_SUBJECT = "database"
_SQLITE_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_POSTGRES_TABLES = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = ?"
_KEY_FILE = "key file"
_KEY_PLACE = "kept signing key"
_RESTORE_KEY = "Restore it from its copy: without it the database cannot be used."


class DatabaseState(NamedTuple):
    """The state of a database.

    ``behind``: an older Ladderboard wrote it, and opening it will migrate it; ``ahead``: a newer
    one did. ``encrypted_value`` is one to try the key file on; ``waiting`` are boards that were
    restored and not resumed.
    """

    version: int
    behind: bool
    ahead: bool
    boards: int = 0
    encrypted_value: bytes | None = None
    waiting: tuple[str, ...] = ()


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def was_interrupted(path: Path) -> bool:
    """Tell whether a file was not closed, as after a crash: it has a log but no shared memory."""
    return _has_log(path) and not path.with_name(f"{path.name}-shm").exists()


@contextmanager
def open_sqlite_readonly(path: Path) -> Iterator[Run]:
    """Yield a function that runs statements on an SQLite file.

    Not for a process that has the file open already: see ``SqliteConnection``.
    """
    # Without a log nothing is being written, and the file is complete; SQLite would create a log
    # even to read it. With a log, SQLite reads the shared memory beside it. If that is missing,
    # SQLite would create it, so entries that are only in the log stay unread.
    shared = _has_log(path) and not was_interrupted(path)
    options = "mode=ro&readonly_shm=1" if shared else "immutable=1"
    try:
        uri = f"file:{quote(os.fsencode(path))}?{options}"
        with closing(sqlite3.connect(uri, uri=True, timeout=_TIMEOUT_SECONDS)) as database:
            if database.execute("PRAGMA application_id").fetchone()[0] != SQLITE_APPLICATION_ID:
                raise InvalidState(f"{path} is not a file of Ladderboard.")
            yield lambda statement, values=(): database.execute(statement, values).fetchall()
    except sqlite3.Error as error:
        raise translate_sqlite_error(error, path) from None


@contextmanager
def open_postgres_readonly(url: str) -> Iterator[tuple[Run, PostgresAddress, int]]:
    """Yield a function that runs read-only statements, the address, and the server's version.

    Raises ``StorageFailed`` if a server cannot be reached, or may lose acknowledged data.
    """
    driver = load_psycopg()
    address = PostgresAddress(url.replace("postgres://", "postgresql://", 1))
    with closing(address.connect()) as connection:
        address.check_server(connection)
        connection.execute("SET default_transaction_read_only = on")
        connection.execute(f"SET statement_timeout = '{_TIMEOUT_SECONDS}s'")

        def run(statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
            sql = statement.replace("main.", f'"{SCHEMA}".').replace("?", "%s")
            try:
                rows: list[tuple[Any, ...]] = connection.execute(sql, values or None).fetchall()
            except driver.Error as error:
                raise StorageFailed(
                    f"{address!r} reported: {address.safe_message(error)}."
                ) from None
            return rows

        yield run, address, connection.info.server_version


def read_database_state(run: Run, version: object, tables: set[str], where: str) -> DatabaseState:
    """Return the state of a database; refuse one that is damaged or not ours."""
    if not isinstance(version, int) or version < 1:
        raise InvalidState(f"{where} is damaged: it has no format number.")
    board_version = 0
    if f"{BOARD_SCHEMA.name}_format" in tables:
        board_version = int(run(select_from(f"{BOARD_SCHEMA.name}_format", "version"))[0][0])
    behind = version < latest_format() or board_version < len(BOARD_SCHEMA.migrations)
    if version > latest_format() or board_version > len(BOARD_SCHEMA.migrations):
        return DatabaseState(version, behind=False, ahead=True)
    if not set(TABLE_NAMES) <= tables:
        raise InvalidState(f"{where} is damaged: its tables are not those of a ledger.")
    boards = count_boards(run) if board_version else 0
    encrypted_value = read_signing_key(run) if board_version else None
    return DatabaseState(
        version,
        behind=behind,
        ahead=False,
        boards=boards,
        encrypted_value=encrypted_value,
        waiting=tuple(waiting_slugs(run)) if board_version else (),
    )


def _check_missing(path: Path) -> list[Finding]:
    if any(path.parent.glob(f"{glob.escape(path.name)}.*.mark")):
        message = f"{path} is missing, but the marks of its boards are here."
        return [problem(_SUBJECT, message, "Put it back, or restore a backup.")]
    finding = note(
        _SUBJECT,
        f"The file {path} does not exist yet.",
        "ladderboard serve DIR or ladderboard board create DIR creates it; if it should exist, "
        "ladderboard settings shows which path is used.",
    )
    return [finding, *_check_writable(path)]


def check_sqlite(path: Path) -> tuple[list[Finding], DatabaseState | None]:
    """Check an SQLite file and its content."""
    if path.is_dir():
        finding = problem(
            _SUBJECT, f"{path} is a directory.", "Give the path of the database file."
        )
        return [finding], None
    if not path.parent.is_dir():
        command = f"mkdir -m 700 {path.parent}"
        return [problem(_SUBJECT, f"Its directory {path.parent} does not exist.", command)], None
    if not path.exists():
        return _check_missing(path), None
    try:
        with open_sqlite_readonly(path) as run:
            version = run("PRAGMA user_version")[0][0]
            state = read_database_state(
                run, version, {row[0] for row in run(_SQLITE_TABLES)}, str(path)
            )
            readable = state.boards and not state.behind and not was_interrupted(path)
            marks = list(_check_marks(path, run)) if readable else []
    except LadderboardError as error:
        if was_interrupted(path):  # the content may be in the log
            return [
                _interrupted_finding(path),
                *_check_writable(path),
                _check_permissions(path),
            ], None
        return [problem(_SUBJECT, str(error), "Restore it from a backup.")], None
    interrupted = [_interrupted_finding(path)] if was_interrupted(path) else []
    return [
        check_format(state, str(path)),
        *marks,
        *interrupted,
        *_check_writable(path),
        _check_permissions(path),
    ], state


def _check_marks(path: Path, run: Run) -> Iterator[Finding]:
    """Check that every board has its mark, and is not behind it: others cannot be opened."""
    marks = {book: _find_mark(path, book) for _, book, _ in list_books(run)}
    positions = {book: mark.read_if_intact() for book, mark in marks.items()}
    for slug, book, entries in list_books(run):  # after the marks: a server may run meanwhile
        position = positions.get(book)
        if book not in marks or (
            position is not None and position.book == book and position.entries <= entries
        ):
            continue
        mark = marks[book].path.name
        reason = f"{mark} is missing beside it, or damaged"
        if position is not None:
            reason = f"{mark} shows that answers are missing from it"
        yield problem(
            _SUBJECT,
            f"{slug} cannot be opened: {reason}. The file may be an old copy.",
            "Put the newest file and its .mark files back; or charge what may have been answered "
            f"since: ladderboard board resume {slug} --charge N",
        )


def _find_mark(path: Path, book: str) -> HighWaterMark:
    """Return the mark of a book; before 0.1 its name was shorter."""
    mark, old_mark = (HighWaterMark(f"{path}.{name}") for name in (book, book[:8]))
    return old_mark if old_mark.path.exists() and not mark.path.exists() else mark


def _interrupted_finding(path: Path) -> Finding:
    message = f"{path} was not closed cleanly. Entries in its write-ahead log were not checked."
    return note(
        _SUBJECT, message, "No action needed: the next process that opens it recovers the log."
    )


def check_format(state: DatabaseState, where: str) -> Finding:
    """Check the format of a database."""
    if state.ahead:
        return problem(
            _SUBJECT,
            f"{where} was written by a newer Ladderboard.",
            "Install that version again, or restore the copy that was made before the migration.",
        )
    boards = format_count(state.boards, "board")
    if state.behind:
        return note(
            _SUBJECT,
            f"{where} has {boards}, in format {state.version}, an old one.",
            "No action needed: the next process that opens it copies and migrates it.",
        )
    return ok(_SUBJECT, f"{where} has {boards}, in format {state.version}.")


def _check_writable(path: Path) -> list[Finding]:
    """Check that this user may write the file and its log."""
    files = [path.with_name(path.name + end) for end in ("", "-wal", "-shm")]
    read_only = [file for file in (path.parent, *files) if file.exists() and not may_write(file)]
    if not read_only:
        return [ok("writing", f"This user can write to {path} and its folder.")]
    return [
        problem(
            "writing",
            f"This user (number {_user_number()}) cannot write to {read_only[0]}, or the disk "
            "is mounted read-only.",
            "Run this as the server's user, or give that user access: chown, chmod u+rw, or "
            "mount -o remount,rw",
        )
    ]


def _user_number() -> str:
    return str(os.geteuid()) if hasattr(os, "geteuid") else "?"


def _check_permissions(path: Path) -> Finding:
    """Check that others cannot read or replace the file."""
    subject = "privacy"
    folder = path.parent.stat().st_mode
    if os.name == "posix" and folder & 0o002 and not folder & stat.S_ISVTX:
        return problem(
            subject,
            f"Every user can put files into {path.parent}, and so replace the database.",
            f"chmod o-w {path.parent}",
        )
    files = [path.with_name(path.name + end) for end in ("", "-wal")]
    for file in files:
        readers = other_readers(file) if file.exists() else ""
        if readers == "anybody":
            message = f"Every user of this machine can read {file} (labels, submissions)."
            return problem(subject, message, f"chmod 600 {file}")
        if readers:
            remedy = f"If that is not intended: chmod 600 {file}"
            return note(subject, f"The group of {file} can read it.", remedy)
    return ok(subject, f"Only its owner can read {path}.")


def check_postgres(url: str) -> tuple[list[Finding], DatabaseState | None]:
    """Check a PostgreSQL server and its database."""
    try:
        with open_postgres_readonly(url) as (run, address, version):
            schema_finding, state = _check_schema(run, repr(address))
    except MissingDependency as error:
        return [problem(_SUBJECT, f"{error}", "pip install 'ladderboard[server]'")], None
    except LadderboardError as error:
        return [problem(_SUBJECT, str(error), _advise(str(error)))], None
    shown = f"Version {version // 10000}.{version % 10000}, with durable commits."
    return [schema_finding, ok("PostgreSQL", shown)], state


def _advise(message: str) -> str:
    if "cannot be read" in message or "must look like" in message:
        return "Correct the address: ladderboard settings shows where it comes from."
    if match := re.search(r"(\w+) = off", message):
        return f"ALTER SYSTEM SET {match[1]} = on; SELECT pg_reload_conf();"
    if "encoded in UTF8" in message:
        return "Create a new one: createdb -E UTF8 -T template0 NAME"
    if "password" in message:
        return "Put the password into PGPASSWORD or ~/.pgpass, or into the address."
    return (
        "Check that PostgreSQL runs, that the address is right, and that pg_hba.conf allows access."
    )


def _check_schema(run: Run, address: str) -> tuple[Finding, DatabaseState | None]:
    tables = {row[0] for row in run(_POSTGRES_TABLES, (SCHEMA,))}
    if not tables:
        return note(
            _SUBJECT,
            f"{address} answers, and has no boards yet.",
            "ladderboard serve DIR or ladderboard board create DIR creates the tables.",
        ), None
    rows = run("SELECT version FROM main.format") if "format" in tables else []
    state = read_database_state(run, rows[0][0] if len(rows) == 1 else None, tables, address)
    return check_format(state, address), state


def check_key(
    key_file: Path | None, encrypted_value: bytes | None, database: Path | None
) -> list[Finding]:
    """Check the key file; ``encrypted_value`` is what it must decrypt, None in a new database."""
    if key_file is None:
        return [_check_no_key(encrypted_value)]
    if key_file.exists():
        problem_found = _check_key_opens(key_file, encrypted_value)
        return (
            _check_key_location(key_file, encrypted_value, database)
            if problem_found is None
            else [problem_found]
        )
    if encrypted_value is None:
        return [
            note(
                _KEY_FILE, f"There is no key file {key_file} yet; it is created with the database."
            )
        ]
    return [problem(_KEY_FILE, f"There is no key file {key_file}.", _RESTORE_KEY)]


def _check_key_opens(key_file: Path, encrypted_value: bytes | None) -> Finding | None:
    """Check that a key file decrypts a value of the database; None if it does."""
    try:
        key = read_key_file(key_file)
        if encrypted_value is not None:
            Cipher(key, SERVER).decrypt(_KEY_PLACE, encrypted_value)
    except MissingDependency as error:
        return problem(_KEY_FILE, str(error), "pip install 'ladderboard[guard]'")
    except WrongKey as error:
        return problem(_KEY_FILE, f"{key_file}: {error}", "Use the key file of this database.")
    except LadderboardError as error:
        return problem(_KEY_FILE, str(error), _RESTORE_KEY)
    return None


def _check_key_location(
    key_file: Path, encrypted_value: bytes | None, database: Path | None
) -> list[Finding]:
    """Check the location and permissions of a key file."""
    readers = other_readers(key_file)
    if readers == "anybody":
        message = f"Every user of this machine can read the key file {key_file}."
        return [problem(_KEY_FILE, message, f"chmod 600 {key_file}")]
    suffix = "" if encrypted_value is None else " and fits the database"
    findings = [ok(_KEY_FILE, f"{key_file} exists{suffix}.")]
    if readers:
        remedy = f"If that is not intended: chmod 600 {key_file}"
        findings.append(note(_KEY_FILE, "Its group can read it.", remedy))
    if database is not None and _is_same_folder(key_file, database):
        message = "It is in the database's folder, so a copy of the folder includes both."
        findings.append(
            note(_KEY_FILE, message, "Move it to another folder, better on another disk.")
        )
    return findings


def _check_no_key(encrypted_value: bytes | None) -> Finding:
    if encrypted_value is None:
        return note(_KEY_FILE, "None is set: secrets will not be encrypted.")
    try:
        NoEncryption().decrypt(_KEY_PLACE, encrypted_value)
    except LadderboardError as error:
        return problem(
            _KEY_FILE, str(error), "Set it: --key-file, LADDERBOARD_KEY_FILE or key_file."
        )
    return note(_KEY_FILE, "None is set: every user who can read the database can read the labels.")


def _is_same_folder(key_file: Path, database: Path) -> bool:
    return os.path.realpath(key_file.parent) == os.path.realpath(database.parent)


_MIN_PYTHON = (3, 11)
_PORT_TIMEOUT_SECONDS = 2.0
_LOW_SPACE, _NO_SPACE = 1 << 30, 100 << 20


def check_program() -> list[Finding]:
    """Check the versions of Python and Ladderboard."""
    python = f"Python {platform.python_version()} in {sys.prefix}"
    if sys.version_info < _MIN_PYTHON:
        finding = problem("Python", f"{python} is too old.", "Use Python 3.11 or newer.")
    else:
        finding = ok("Python", f"{python}.")
    folder = Path(__file__).parents[2]
    return [finding, ok("Ladderboard", f"Version {__version__} in {folder}.")]


def check_port(host: str, port: int) -> list[Finding]:
    """Check that the port is free or used by a Ladderboard."""
    subject = "port"
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        message = f"host is {host!r:.80}, which is not an IP address."
        return [problem(subject, message, "Use an address of this machine, or 0.0.0.0 for all.")]
    if port == 0:
        return [ok(subject, "Any free port.")]
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((str(address), port))
    except OSError as error:
        return [_check_taken_port(error, address, port)]
    return [ok(subject, f"{host} port {port} is free.")]


def _check_taken_port(
    error: OSError, address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int
) -> Finding:
    subject = "port"
    if error.errno != errno.EADDRINUSE:
        message = f"Cannot listen on {address} port {port}: {error.strerror}."
        remedy = "Use a port above 1023, behind a reverse proxy."
        return problem(
            subject, message, remedy if error.errno == errno.EACCES else "Use another host."
        )
    if address.is_unspecified:
        local_address = "::1" if address.version == 6 else "127.0.0.1"
    else:
        local_address = str(address)
    if _is_ladderboard(local_address, port):
        return ok(subject, f"A Ladderboard answers on port {port}.")
    message = f"Port {port} is used by another program."
    remedy = f"Stop that program (ss -ltnp 'sport = {port}'), or choose another: --port."
    return problem(subject, message, remedy)


def _is_ladderboard(host: str, port: int) -> bool:
    """Tell whether a Ladderboard answers on a port."""
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    response = b""
    with (
        suppress(OSError),
        socket.create_connection((host, port), timeout=_PORT_TIMEOUT_SECONDS) as connection,
    ):
        connection.sendall(request)
        while len(response) < 65536 and (piece := connection.recv(65536)):
            response += piece
    head, _, body = response.partition(b"\r\n\r\n")
    return b"x-request-id" in head.lower() and (
        b'"status":"ok"' in body or b"application/problem+json" in head.lower()
    )


def check_disk(subject: str, folder: Path) -> Finding:
    """Check the free space of a folder's disk."""
    while not folder.exists():  # it is created when it is needed
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        message = f"{folder} cannot be checked: {error.strerror}."
        return problem(subject, message, "Check that the disk is mounted.")
    message = f"{format_size(free)} are free where {folder} is"
    remedy = "Free some space, or move it to a larger disk."
    if free < _NO_SPACE:
        need_now = (
            "the write-ahead log of an SQLite file takes up to 64 MB, a submission up to 100 MB"
        )
        return problem(subject, f"{message}; {need_now}.", remedy)
    if free < _LOW_SPACE:
        return note(subject, f"{message}; below 512 MiB large submissions are refused.", remedy)
    return ok(subject, f"{message}.")


_SETTINGS_SUBJECT = "settings"


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
    path = None if file is None else absolute_path(file)
    try:
        findings, state = _check_database(address, path)
    except OSError as error:
        findings, state = [_cannot_inspect("database", error)], None
    yield from findings
    for slug in () if state is None else state.waiting:
        message = f"{slug} was restored and takes no submissions until it is resumed."
        yield note("boards", message, f"ladderboard board resume {slug} --charge N")
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


def _check_database(address: str, path: Path | None) -> tuple[list[Finding], DatabaseState | None]:
    if path is not None:
        return check_sqlite(path)
    if address.startswith("postgres"):
        return check_postgres(address)
    message = f"Unsupported database URL: {address.partition('://')[0]}://..."
    remedy = "Give a file, or postgresql+psycopg://user@host/name"
    return [problem("database", message, remedy)], None


def _check_disks(settings: ResolvedSettings, path: Path | None) -> Iterator[Finding]:
    if path is not None:
        yield check_disk("disk of the database", path.parent)
    if settings["serve.spool"] is not None:
        yield check_disk("disk of the spool", absolute_path(settings["serve.spool"]))
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
    findings = [note(_SETTINGS_SUBJECT, message) for message in unknown_variables(os.environ)]
    try:
        settings = find_settings(config, overrides)
        settings.settings.with_metrics_token()
    except InvalidSetting as error:
        remedy = "Correct it; ladderboard settings lists all settings."
        # A database named on the command line is checked all the same.
        partial = (
            find_settings(None, overrides, environment={}) if overrides.get("database") else None
        )
        return [problem(_SETTINGS_SUBJECT, str(error), remedy), *findings], partial
    message = "No settings file: the environment and the defaults apply."
    if settings.file is not None:
        message = f"{settings.file} can be read."
    return [ok(_SETTINGS_SUBJECT, message), *_check_workers(settings), *findings], settings


def _check_workers(settings: ResolvedSettings) -> list[Finding]:
    """Check that several workers do not share an SQLite file."""
    if settings["serve.workers"] == 1 or sqlite_path(settings["database"]) is None:
        return []
    message = f"serve.workers is {settings['serve.workers']}, but SQLite allows one process."
    return [problem(_SETTINGS_SUBJECT, message, "Set it to 1, or serve from PostgreSQL.")]
