"""Checks of the database, in SQLite or PostgreSQL, and of its key file.

A look into a database changes nothing: no file is made, no table, no lock is kept.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from ladderboard._formatting import format_count
from ladderboard.board import BOARD_SCHEMA, SERVER_BOOK
from ladderboard.errors import (
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
    NoEncryption,
    PostgresAddress,
    latest_format,
    load_psycopg,
    select_from,
    translate_sqlite_error,
)
from ladderboard.server._doctor._finding import may_write, note, ok, other_readers, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ladderboard.server._doctor._finding import Finding

    Run = Callable[..., list[tuple[Any, ...]]]


SCHEMA = "ladderboard"
_ENTRIES = 2**40  # places that a book has: see ladderboard.ledger._storage
_LAST = "SELECT time FROM main.entry WHERE place >= ? AND place < ? ORDER BY place DESC LIMIT 1"
_KEY = (
    "SELECT value FROM main.kept JOIN main.book ON main.book.id = main.kept.book "
    "WHERE main.book.name = ? AND main.kept.name = 'signing key'"
)
_PATIENCE = 5  # seconds
_ABOUT = "database"
_SQLITE_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_SAFE = ("fsync", "full_page_writes", "synchronous_commit")
_OLDEST = 100000  # version 10, which first had the columns that are used
_SETTINGS = "SELECT name, setting FROM pg_catalog.pg_settings WHERE name = ANY(?)"
_POSTGRES_TABLES = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = ?"
_MAKE = "SELECT has_database_privilege(current_database(), 'CREATE')"
_MAY = "SELECT CASE WHEN has_schema_privilege(?, 'USAGE') THEN has_table_privilege(?, 'INSERT') END"
_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8, pg_is_in_recovery()"
_KEY_FILE = "key file"
_PLACE = "kept signing key"
_BACK = "Put it back from where its copy is kept: without it nobody can go on."


class DatabaseState(NamedTuple):
    """What was seen in a database.

    ``behind`` says that an older Ladderboard wrote it, so that it is brought up to date when it is
    opened; ``ahead`` that a newer one did. ``newest`` is the time of the newest entry, and
    ``sealed`` what the key file is tried on.
    """

    version: int
    behind: bool
    ahead: bool
    boards: int = 0
    newest: int | None = None
    sealed: bytes | None = None


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def was_interrupted(path: Path) -> bool:
    """Tell whether a file was left in the middle, as when a machine stops: a log, and no memory."""
    return _has_log(path) and not path.with_name(f"{path.name}-shm").exists()


@contextmanager
def open_sqlite_readonly(path: Path) -> Iterator[Run]:
    """Give what runs statements on an SQLite file.

    Not for a process that has the file open otherwise: see ``SqliteConnection``.
    """
    # Without a log nobody writes, and the file is all there is; SQLite would begin a log even to
    # read. With one, SQLite reads the memory that its users share. Where that is missing it would
    # be made from the log, so what is in the log alone stays unseen.
    shared = _has_log(path) and not was_interrupted(path)
    quiet = "mode=ro&readonly_shm=1" if shared else "immutable=1"
    try:
        uri = f"file:{quote(os.fsencode(path))}?{quiet}"
        with closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE)) as database:
            if database.execute("PRAGMA application_id").fetchone()[0] != SQLITE_APPLICATION_ID:
                raise InvalidState(f"{path} is not a file of Ladderboard.")
            yield lambda statement, values=(): database.execute(statement, values).fetchall()
    except sqlite3.Error as error:
        raise translate_sqlite_error(error, path) from None


@contextmanager
def open_postgres_readonly(url: str) -> Iterator[tuple[Run, Any]]:
    """Give what runs statements in PostgreSQL, where they may only read, and the connection."""
    driver = load_psycopg()
    address = PostgresAddress(url.replace("postgres://", "postgresql://", 1))
    with closing(address.connect()) as connection:
        connection.execute("SET default_transaction_read_only = on")
        connection.execute(f"SET statement_timeout = '{_PATIENCE}s'")

        def run(statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
            words = statement.replace("main.", f'"{SCHEMA}".').replace("?", "%s")
            try:
                rows: list[tuple[Any, ...]] = connection.execute(words, values or None).fetchall()
            except driver.Error as error:
                raise StorageFailed(f"{address!r} said: {address.clean(error)}.") from None
            return rows

        yield run, connection


def read_database_state(run: Run, version: object, tables: set[str], where: str) -> DatabaseState:
    """Return what is in a database of this format, and refuse what is none of ours."""
    if not isinstance(version, int) or version < 1:
        raise InvalidState(f"{where} is damaged: it does not say its format.")
    part = 0
    if f"{BOARD_SCHEMA.name}_format" in tables:
        part = int(run(select_from(f"{BOARD_SCHEMA.name}_format", "version"))[0][0])
    behind = version < latest_format() or part < len(BOARD_SCHEMA.migrations)
    if version > latest_format() or part > len(BOARD_SCHEMA.migrations):
        return DatabaseState(version, behind=False, ahead=True)
    if not set(TABLE_NAMES) <= tables:
        raise InvalidState(f"{where} is damaged: its tables are not those of a ledger.")
    boards = run("SELECT count(*) FROM main.board")[0][0] if part else 0
    times = [
        row[0]
        for (book,) in run("SELECT id FROM main.book")
        for row in run(_LAST, (book * _ENTRIES, (book + 1) * _ENTRIES))
    ]
    sealed = run(_KEY, (SERVER_BOOK,))
    return DatabaseState(
        version,
        behind=behind,
        ahead=False,
        boards=boards,
        newest=max(times, default=None),
        sealed=bytes(sealed[0][0]) if sealed else None,
    )


def check_sqlite(path: Path) -> tuple[list[Finding], DatabaseState | None]:
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
        return [said, *_check_writable(path)], None
    try:
        with open_sqlite_readonly(path) as run:
            version = run("PRAGMA user_version")[0][0]
            seen = read_database_state(
                run, version, {row[0] for row in run(_SQLITE_TABLES)}, str(path)
            )
    except LadderboardError as error:
        if was_interrupted(path):  # all of it may be in the log
            return [
                _interrupted_finding(path),
                *_check_writable(path),
                _check_permissions(path),
            ], None
        return [problem(_ABOUT, str(error), "Restore it from a backup.")], None
    left = [_interrupted_finding(path)] if was_interrupted(path) else []
    return [
        check_format(seen, str(path)),
        *left,
        *_check_writable(path),
        _check_permissions(path),
    ], seen


def _interrupted_finding(path: Path) -> Finding:
    said = f"{path} was not closed: the machine stopped. Its log may hold more than was looked at."
    return note(_ABOUT, said, "Nothing: whoever opens it next goes on from the log.")


def check_format(seen: DatabaseState, where: str) -> Finding:
    """Say which format a database is in, and what will become of it."""
    if seen.ahead:
        return problem(
            _ABOUT,
            f"{where} was written by a newer Ladderboard.",
            "Install that version again, or restore what was copied before it was brought up to "
            "date.",
        )
    boards = format_count(seen.boards, "board")
    if seen.behind:
        return note(
            _ABOUT,
            f"{where} has {boards}, in format {seen.version}, which is an old one.",
            "Nothing: whoever opens it next brings it up to date, after copying it.",
        )
    return ok(_ABOUT, f"{where} has {boards}, in format {seen.version}.")


def _check_writable(path: Path) -> list[Finding]:
    """Tell whether we could write the file and, beside it, its log."""
    beside = [path.with_name(path.name + end) for end in ("", "-wal", "-shm")]
    closed = [each for each in (path.parent, *beside) if each.exists() and not may_write(each)]
    if not closed:
        return [ok("writing", f"{path} and its folder may be written by this user.")]
    return [
        problem(
            "writing",
            f"This user (number {_user_number()}) may not write {closed[0]}, or the disk is "
            "mounted read-only.",
            "Run this as the user who serves; else give it to that user: chown, chmod u+rw, or "
            "mount -o remount,rw",
        )
    ]


def _user_number() -> str:
    return str(os.geteuid()) if hasattr(os, "geteuid") else "?"


def _check_permissions(path: Path) -> Finding:
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
        who = other_readers(each) if each.exists() else ""
        if who == "anybody":
            said = f"Anybody on this machine may open {each}: labels, tokens' hashes, submissions."
            return problem(about, said, f"chmod 600 {each}")
        if who:
            do = f"If that is not meant: chmod 600 {each}"
            return note(about, f"The group of {each} may open it.", do)
    return ok(about, f"Only its owner may open {path}.")


class DatabaseCheck(NamedTuple):
    """What was found out: findings, what was seen, and how far the server's clock is ahead."""

    findings: list[Finding]
    seen: DatabaseState | None = None
    ahead: float | None = None


def check_postgres(url: str, connections: int) -> DatabaseCheck:
    """Look at a server, and into its database; ``connections`` is how many we may want at once."""
    try:
        address = repr(PostgresAddress(url.replace("postgres://", "postgresql://", 1)))
        with open_postgres_readonly(url) as (run, connection):
            said = [_check_version(connection.info.server_version), _check_durability(run)]
            before = time.time()
            now, standby = run(_NOW)[0]
            ahead = now - (before + time.time()) / 2
            if standby:
                said.append(
                    problem(
                        "writing",
                        f"{address} is a copy that only follows another server.",
                        "Name the server that is written to.",
                    )
                )
            said += _check_connection_limit(run, connections)
            inside, seen = _check_schema(run, address)
    except MissingDependency as error:
        return DatabaseCheck([problem(_ABOUT, f"{error}", "pip install 'ladderboard[server]'")])
    except LadderboardError as error:
        return DatabaseCheck([problem(_ABOUT, str(error), _advise(str(error)))])
    return DatabaseCheck([inside, *said], seen, ahead)


def _advise(said: str) -> str:
    if "cannot be read" in said or "must look like" in said:
        return "Correct the address: ladderboard settings shows where it comes from."
    if "password" in said:
        return "Put the password into PGPASSWORD or ~/.pgpass, or into the address."
    return "See that PostgreSQL runs, that the address is right, and that pg_hba.conf lets us in."


def _check_version(number: int) -> Finding:
    shown = f"PostgreSQL {number // 10000}.{number % 10000}"
    if number < _OLDEST:
        return problem("PostgreSQL", f"{shown} is too old.", "Use PostgreSQL 10 or newer.")
    return ok("PostgreSQL", f"{shown}.")


def _check_durability(run: Run) -> Finding:
    about = "durability"
    found: dict[str, str] = dict(run(_SETTINGS, ([*_SAFE, "server_encoding"],)))
    for name in _SAFE:
        if found.get(name) == "off":
            return problem(
                about,
                f"The server runs with {name} = off, so it may lose what it has acknowledged.",
                f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf();",
            )
    encoding = found.get("server_encoding")
    if encoding != "UTF8":
        return problem(
            about,
            f"The database is encoded in {encoding}.",
            "Make one with: createdb -E UTF8 -T template0 NAME",
        )
    safe = ", ".join(f"{name} = {found.get(name)}" for name in _SAFE)
    return ok(about, f"{safe}, encoding {encoding}.")


def _check_connection_limit(run: Run, wanted: int) -> list[Finding]:
    names = ["max_connections", "superuser_reserved_connections"]
    found = {name: int(value) for name, value in run(_SETTINGS, (names,))}
    room = found["max_connections"] - found["superuser_reserved_connections"]
    if room >= wanted:
        return []
    return [
        note(
            "connections",
            f"The server allows {room}; workers and threads may want {wanted} at once, and wait.",
            f"Lower serve.threads, or: ALTER SYSTEM SET max_connections = {wanted + 10};",
        )
    ]


def _check_schema(run: Run, address: str) -> tuple[Finding, DatabaseState | None]:
    tables = {row[0] for row in run(_POSTGRES_TABLES, (SCHEMA,))}
    if not tables:
        if not run(_MAKE)[0][0]:
            return problem(
                _ABOUT,
                f"{address} has no boards yet, and this user may not make the tables.",
                "GRANT CREATE ON DATABASE name TO user;",
            ), None
        return note(
            _ABOUT,
            f"{address} answers, and has no boards yet.",
            "ladderboard serve DIR or ladderboard board create DIR makes what is needed.",
        ), None
    if "entry" in tables and not run(_MAY, (SCHEMA, f"{SCHEMA}.entry"))[0][0]:
        return problem(
            _ABOUT,
            f"This user may not write the tables in {address}.",
            "Name the user who made them.",
        ), None
    rows = run("SELECT version FROM main.format") if "format" in tables else []
    seen = read_database_state(run, rows[0][0] if len(rows) == 1 else None, tables, address)
    return check_format(seen, address), seen


def check_key(key_file: Path | None, sealed: bytes | None, database: Path | None) -> list[Finding]:
    """Look at the key file; ``sealed`` is what it must open, None where there is nothing yet."""
    if key_file is None:
        return [_check_no_key(sealed)]
    if key_file.exists():
        wrong = _check_key_opens(key_file, sealed)
        return _check_key_location(key_file, sealed, database) if wrong is None else [wrong]
    if sealed is None:
        return [
            note(_KEY_FILE, f"There is no key file {key_file} yet; it is made with the database.")
        ]
    return [problem(_KEY_FILE, f"There is no key file {key_file}.", _BACK)]


def _check_key_opens(key_file: Path, sealed: bytes | None) -> Finding | None:
    """Try a key file on what it must open; None if it is the right one."""
    try:
        key = read_key_file(key_file)
        if sealed is not None:
            Cipher(key, SERVER_BOOK).decrypt(_PLACE, sealed)
    except MissingDependency as error:
        return problem(_KEY_FILE, str(error), "pip install 'ladderboard[guard]'")
    except WrongKey as error:
        return problem(_KEY_FILE, f"{key_file}: {error}", "Give the one that belongs to it.")
    except LadderboardError as error:
        return problem(_KEY_FILE, str(error), _BACK)
    return None


def _check_key_location(
    key_file: Path, sealed: bytes | None, database: Path | None
) -> list[Finding]:
    """Look where a key file lies, and who may read it."""
    who = other_readers(key_file)
    if who == "anybody":
        said = f"Anybody on this machine may read the key file {key_file}."
        return [problem(_KEY_FILE, said, f"chmod 600 {key_file}")]
    fits = "" if sealed is None else " and fits the database"
    found = [ok(_KEY_FILE, f"{key_file} is there{fits}.")]
    if who:
        do = f"If that is not meant: chmod 600 {key_file}"
        found.append(note(_KEY_FILE, "Its group may read it.", do))
    if database is not None and _is_same_folder(key_file, database):
        said = "It lies beside the database: whoever takes the one takes the other."
        found.append(note(_KEY_FILE, said, "Keep it in another folder, better on another disk."))
    return found


def _check_no_key(sealed: bytes | None) -> Finding:
    if sealed is None:
        return note(_KEY_FILE, "None is set: what is secret will not be encrypted.")
    try:
        NoEncryption().decrypt(_PLACE, sealed)
    except LadderboardError as error:
        return problem(
            _KEY_FILE, str(error), "Name it: --key-file, LADDERBOARD_KEY_FILE or key_file."
        )
    return note(_KEY_FILE, "There is none: whoever can read the database can read the labels.")


def _is_same_folder(key_file: Path, database: Path) -> bool:
    return os.path.realpath(key_file.parent) == os.path.realpath(database.parent)
