"""A storage in a PostgreSQL database."""

from __future__ import annotations

import hashlib
import re
from functools import partial
from typing import TYPE_CHECKING, cast

from ladderboard.errors import InvalidSetting, InvalidState
from ladderboard.ledger._block import SqlStorage
from ladderboard.ledger._migrate import build, latest, lift, refuse_unknown
from ladderboard.ledger._pool import Pool
from ladderboard.ledger._postgres_address import Address, Patience
from ladderboard.ledger._postgres_link import PostgresLink
from ladderboard.ledger._sql import NAMES
from ladderboard.ledger._storage import COPY
from ladderboard.ledger._turns import OneByBook

if TYPE_CHECKING:
    from ladderboard.ledger._link import Link

__all__ = ["PostgresStorage"]

_WORDS = {
    "blob": "BYTEA",
    "whole": "BIGINT",
    "prefix": "",  # of an index's name
    "on": "main.",  # of the name of its table
    "real": "DOUBLE PRECISION",
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "tail": "",
}
_TABLES = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = ?"
_SCHEMA = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = ?"
_COPY = (
    'CREATE TABLE "{to}".{name} (LIKE main.{name} INCLUDING ALL)',
    'INSERT INTO "{to}".{name} OVERRIDING SYSTEM VALUE SELECT * FROM main.{name}',
)
_FLAG = (
    'INSERT INTO "{to}".kept (book, name, value) SELECT id, ?, ? FROM "{to}".book '
    "ON CONFLICT (book, name) DO UPDATE SET value = excluded.value"
)
# Numbers of books are not used again in the copy either.
_GO_ON = (
    "SELECT setval(pg_get_serial_sequence(?, 'id'), COALESCE(max(id), 1), max(id) IS NOT NULL) "
    'FROM "{to}".book'
)


class PostgresStorage(SqlStorage):
    """Books in a schema of a PostgreSQL database, for many processes and machines.

    A book that is being changed is locked by its row. A server that may lose what it has
    acknowledged is refused.

    Parameters
    ----------
    url
        ``postgresql://`` or ``postgresql+psycopg://user:password@host/name``.
    create
        Make the tables if they are missing; many processes may say so at once.
    schema
        Where the tables are.
    """

    _words = _WORDS

    def __init__(self, url: str, *, create: bool = False, schema: str = "ladderboard") -> None:
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,39}", schema):
            raise InvalidSetting(
                f"A schema's name must be at most 40 letters a-z, digits and _, not {schema!r:.80}."
            )
        self._address = Address(url)
        self._schema = schema
        self._pool = Pool(partial(PostgresLink, self._address, schema), OneByBook)
        try:
            link = self._pool.take()
            try:
                self._prepare(link, create=create)
            finally:
                link.undo()
                self._pool.give(link)
        except BaseException:
            self._pool.close()
            raise

    def __repr__(self) -> str:
        return f"<PostgresStorage: {self._address!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        """Travel to another process as an address; whoever reads the bytes reads the password."""
        return (_again, (self._address.url, self._schema))

    def limit_reads(self, seconds: float) -> None:
        """Wait so long at most: for a transaction to begin, on a new connection if need be."""
        # A connection that is kept is tried before a new one, which takes several messages.
        connect = max(2, int(0.6 * seconds))
        self._address.patience = Patience(connect, 0.4 * seconds, seconds)

    def _prepare(self, link: Link, *, create: bool) -> None:
        """Find the tables; make or migrate them under a lock, in one transaction."""
        if self._format(link) == latest():
            return
        self._alone(link)
        version = self._format(link)  # others may have been here first
        if version is None:
            if not create:
                raise InvalidState(f"{self._address!r} holds no ledger in {self._schema!r}.")
            self._create(link)
        elif version < latest():
            self._keep_copy(link, version)
            lift(version, link.run, _WORDS)
            link.run("UPDATE main.format SET version = ?", (latest(),))
        link.commit()

    def remove(self) -> None:
        """Remove the schema with everything in it, for good: one in which something was tried."""
        link = self._pool.take()
        try:
            link.run(f'DROP SCHEMA IF EXISTS "{self._schema}" CASCADE')
        finally:
            self._pool.give(link)

    def _alone(self, link: Link) -> None:
        link.begin(write=True)
        key = hashlib.sha256(f"ladderboard {self._schema}".encode()).digest()[:8]
        cast("PostgresLink", link).take_long()
        link.run("SET LOCAL lock_timeout = '600s'")  # others may have much to copy
        link.run("SELECT pg_advisory_xact_lock(?)", (int.from_bytes(key, signed=True),))

    def _tables(self, link: Link) -> set[str]:
        return {row[0] for row in link.run(_TABLES, (self._schema,))}

    def _format(self, link: Link) -> int | None:
        """Return the format of the tables, or None where there are none at all."""
        found = self._tables(link)
        if not found:
            return None
        if not {"format", *NAMES} <= found:
            raise InvalidState(
                f"The schema {self._schema!r} of {self._address!r} is not a ledger's."
            )
        rows = link.run("SELECT version FROM main.format")
        if len(rows) != 1:
            raise InvalidState(f"{self._address!r} is damaged: it does not say its format.")
        refuse_unknown(rows[0][0], repr(self._address), self._copies(link))
        return int(rows[0][0])

    def _create(self, link: Link) -> None:
        if not link.run(_SCHEMA, (self._schema,)):
            link.run(f'CREATE SCHEMA "{self._schema}"')
        build(link.run, _WORDS)
        link.run("CREATE TABLE main.format (version BIGINT NOT NULL)")
        link.run("INSERT INTO main.format (version) VALUES (?)", (latest(),))

    def _copies(self, link: Link, part: str = "") -> list[str]:
        begin = self._before(part)
        rows = link.run("SELECT nspname::text FROM pg_catalog.pg_namespace")
        found = (row[0] for row in rows if row[0].startswith(begin))
        return [each for each in found if each[len(begin) :].replace("_", "").isdigit()]

    def _before(self, part: str) -> str:
        """Return how the names of copies begin that were made before a part's steps, or our own."""
        return f"{self._schema}_before_{part}_" if part else f"{self._schema}_before_"

    def _keep_copy(self, link: Link, version: int, part: str = "") -> None:
        name = (
            f"{self._schema}_before_{part}_{version}"
            if part
            else f"{self._schema}_before_{version}"
        )
        to, count = name, 1
        while link.run(_SCHEMA, (to,)):  # who went back and comes again has one already
            count += 1
            to = f"{name}_{count}"
        self._copy(link, to)

    def _copy(self, link: Link, to: str) -> None:
        """Copy all tables as they are; the books in the copy know that they are copies."""
        link.run("LOCK TABLE main.book IN EXCLUSIVE MODE")  # no block that writes is open now
        link.run(f'CREATE SCHEMA "{to}"')
        for name in sorted(self._tables(link)):
            for statement in _COPY:
                link.run(statement.format(to=to, name=name))
        link.run(_FLAG.format(to=to), (COPY, b"1"))
        link.run(_GO_ON.format(to=to), (f"{to}.book",))


def _again(url: str, schema: str) -> PostgresStorage:
    return PostgresStorage(url, schema=schema)
