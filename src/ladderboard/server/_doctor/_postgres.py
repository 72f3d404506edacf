"""A database in PostgreSQL: whether it answers, keeps what it says, and is up to date."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.errors import LadderboardError, MissingDependency
from ladderboard.ledger import Address
from ladderboard.server._doctor._finding import note, ok, problem
from ladderboard.server._doctor._look import SCHEMA, look_into_postgres, see
from ladderboard.server._doctor._sqlite import formatted

if TYPE_CHECKING:
    from ladderboard.server._doctor._finding import Finding
    from ladderboard.server._doctor._look import Run, Seen

__all__ = ["Told", "check_postgres"]

_ABOUT = "database"
_SAFE = ("fsync", "full_page_writes", "synchronous_commit")
_OLDEST = 100000  # version 10, which first had the columns that are used
_SETTINGS = "SELECT name, setting FROM pg_catalog.pg_settings WHERE name = ANY(?)"
_TABLES = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = ?"
_MAKE = "SELECT has_database_privilege(current_database(), 'CREATE')"
_MAY = "SELECT CASE WHEN has_schema_privilege(?, 'USAGE') THEN has_table_privilege(?, 'INSERT') END"
_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8, pg_is_in_recovery()"


class Told(NamedTuple):
    """What was found out: findings, what was seen, and how far the server's clock is ahead."""

    findings: list[Finding]
    seen: Seen | None = None
    ahead: float | None = None


def check_postgres(url: str, connections: int) -> Told:
    """Look at a server, and into its database; ``connections`` is how many we may want at once."""
    try:
        address = repr(Address(url.replace("postgres://", "postgresql://", 1)))
        with look_into_postgres(url) as (run, connection):
            said = [_version(connection.info.server_version), _settings(run)]
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
            said += _room(run, connections)
            inside, seen = _inside(run, address)
    except MissingDependency as error:
        return Told([problem(_ABOUT, f"{error}", "pip install 'ladderboard[server]'")])
    except LadderboardError as error:
        return Told([problem(_ABOUT, str(error), _what_to_do(str(error)))])
    return Told([inside, *said], seen, ahead)


def _what_to_do(said: str) -> str:
    if "cannot be read" in said or "must look like" in said:
        return "Correct the address: ladderboard settings shows where it comes from."
    if "password" in said:
        return "Put the password into PGPASSWORD or ~/.pgpass, or into the address."
    return "See that PostgreSQL runs, that the address is right, and that pg_hba.conf lets us in."


def _version(number: int) -> Finding:
    shown = f"PostgreSQL {number // 10000}.{number % 10000}"
    if number < _OLDEST:
        return problem("PostgreSQL", f"{shown} is too old.", "Use PostgreSQL 10 or newer.")
    return ok("PostgreSQL", f"{shown}.")


def _settings(run: Run) -> Finding:
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


def _room(run: Run, wanted: int) -> list[Finding]:
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


def _inside(run: Run, address: str) -> tuple[Finding, Seen | None]:
    tables = {row[0] for row in run(_TABLES, (SCHEMA,))}
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
    seen = see(run, rows[0][0] if len(rows) == 1 else None, tables, address)
    return formatted(seen, address), seen
