"""A storage in a PostgreSQL database."""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from functools import cache, partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ladderboard.errors import (
    DiskFull,
    InvalidSetting,
    InvalidState,
    MissingDependency,
    ReadOnly,
    StorageFailed,
)
from ladderboard.ledger._storage._base import COPY
from ladderboard.ledger._storage._pool import Connection, PerBookLock, Pool, PoolExhausted
from ladderboard.ledger._storage._schema import (
    TABLE_NAMES,
    create_tables,
    latest_format,
    migrate,
    refuse_unknown_format,
)
from ladderboard.ledger._storage._transaction import SqlStorage

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import ModuleType

_KEEPALIVE = 60  # seconds, unless the address says otherwise: no firewall forgets the connection
_SILENT = 5.0  # seconds for which nobody tries again where nobody answered
# Seconds. A server that says nothing for so long is taken for one that never will: it was stopped,
# or what lies between has forgotten the connection.
_LOCKED = 30  # for a lock, as the server counts them
_ANSWER = 45.0  # for any statement that changes something, so for more than a lock
_LONG = 86400.0  # for what copies whole tables
_KINDS = {"53100": DiskFull, "25006": ReadOnly}
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# One message: a lock that is not had in time, or is kept by a client that fell silent, is let go.
_WRITE = (
    "BEGIN ISOLATION LEVEL READ COMMITTED; "
    f"SET LOCAL lock_timeout = '{_LOCKED}s'; "
    "SET LOCAL idle_in_transaction_session_timeout = '300s'"
)
# Asked with every lock, because a running server may be told otherwise.
_SAFE = (
    "current_setting('fsync'), current_setting('full_page_writes'), "
    "current_setting('synchronous_commit')"
)
_LOCK = (
    f"SELECT id, (SELECT version FROM main.format), {_SAFE} "  # noqa: S608 - our own words
    "FROM main.book WHERE name = ? FOR UPDATE"
)
_NOW = "SELECT floor(extract(epoch FROM clock_timestamp()))::bigint"
_NUMBER = "SELECT id FROM main.book WHERE name = ?"
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


def load_psycopg() -> ModuleType:
    """Return the driver, or say what to install."""
    try:
        import psycopg  # noqa: PLC0415 - optional
    except ImportError:
        raise MissingDependency(
            "PostgreSQL needs psycopg: pip install 'ladderboard[server]'."
        ) from None
    return psycopg


@cache
def _patient() -> Any:
    """Return the class of connections that do not wait for ever.

    A server that was stopped, or a machine that is gone, ends no connection: nothing comes any
    more, and no timeout that the server keeps would ever run out.
    """
    psycopg = load_psycopg()

    class Patient(psycopg.Connection):  # type: ignore[name-defined,misc]
        """A connection on which the other side may be silent for ``patience`` seconds."""

        patience = 45.0

        def wait(self, gen: Any, *given: Any, **more: Any) -> Any:
            """Wait for an answer."""
            return super().wait(_listening(gen, self.patience), *given, **more)

    return Patient


def _listening(gen: Any, seconds: float) -> Generator[Any, Any, Any]:
    """Yield what the driver wants to wait for, until nothing has moved for so many seconds."""
    until = 0.0
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready:
                until = 0.0
            elif not until:  # the driver looks ten times a second
                until = monotonic() + seconds
            elif monotonic() > until:
                said = f"the server said nothing for {seconds:g} seconds"
                raise load_psycopg().OperationalError(said)
            wanted = gen.send(ready)
    except StopIteration as done:
        return done.value


class PostgresTimeouts(NamedTuple):
    """How many seconds a silent server is waited for.

    ``connect`` is for a new connection, ``begin`` for the first statement of a transaction, which
    waits for nobody, and ``read`` for any other statement of one that only reads.
    """

    connect: int = 10
    begin: float = 5.0
    read: float = 45.0


class PostgresAddress:
    """Where a database is, and what of that may be said."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        if scheme not in {"postgresql", "postgresql+psycopg"}:
            raise InvalidSetting(
                "The address of a PostgreSQL database must look like "
                "postgresql+psycopg://user@host/name."
            )
        self.url = f"postgresql://{rest}"
        self.patience = PostgresTimeouts()
        self._silent = 0.0  # until when nobody tries
        psycopg = load_psycopg()
        try:
            self._parts = psycopg.conninfo.conninfo_to_dict(self.url)
        except psycopg.Error:  # whose words may quote the password
            self._parts = {"port": "unreadable"}
        if _torn(rest) or not str(self._parts.get("port", "1")).replace(",", "").isdigit():
            raise InvalidSetting(
                "The address of the PostgreSQL database cannot be read; special characters in "
                "names and passwords are written as %XX."
            )

    def __repr__(self) -> str:
        """Say it without the password."""
        name, host = self._parts.get("dbname", ""), self._parts.get("host", "")
        return f"the PostgreSQL database {name!r} at {host!r}"

    def connect(self) -> Any:
        """Open a connection."""
        psycopg = load_psycopg()
        if monotonic() < self._silent:  # or all threads would wait, one after another
            raise StorageFailed(f"There is no way to {self!r}: it did not answer just now.")
        default = {"connect_timeout": self.patience.connect, "keepalives_idle": _KEEPALIVE}
        given = {name: each for name, each in default.items() if name not in self._parts}
        try:
            return _patient().connect(self.url, autocommit=True, client_encoding="UTF8", **given)
        except psycopg.Error as error:
            said = f"There is no way to {self!r}: {self.clean(error)}."
            if isinstance(error, psycopg.errors.ConnectionTimeout):
                self._silent = monotonic() + _SILENT
                raise StorageFailed(said) from None
            raise PoolExhausted(said) from None

    def clean(self, error: Exception) -> str:
        """Return the first line that a driver or a server said, without any password."""
        diag = getattr(error, "diag", None)
        said = (diag.message_primary if diag is not None else None) or str(error)
        said = said.strip().partition("\n")[0].rstrip(".:")
        for key in ("password", "sslpassword"):
            if self._parts.get(key):
                said = said.replace(str(self._parts[key]), "***")
        return said


def _torn(rest: str) -> bool:
    """Tell whether a password with @, / or ? in it was taken apart, and half of it for a host."""
    place, _, path = rest.partition("/")
    user, _, query = place.partition("?")
    return user.count("@") > 1 or "@" in query or "@" in path.partition("?")[0]


class PostgresConnection(Connection):
    """A connection whose statements name their schema."""

    def __init__(self, address: PostgresAddress, schema: str) -> None:
        self._driver = load_psycopg()
        self._address = address
        self._prefix = f'"{schema}".'
        self._words: dict[str, str] = {}
        super().__init__(address.connect())
        self.connection.patience = address.patience.begin
        try:
            settings = self.query(f"SELECT {_SAFE}, current_setting('server_encoding')")[0]
            self._refuse_unsafe(settings)
            if settings[3] != "UTF8":
                raise StorageFailed(f"{address!r} must be encoded in UTF8, not {settings[3]}.")
        except BaseException:
            self._break()
            raise

    def _refuse_unsafe(self, settings: tuple[Any, ...]) -> None:
        """Refuse a server that may forget what it has acknowledged.

        ``local`` and ``remote_write`` are as good as ``on`` here: with all of them a commit waits
        until this server's own log is on its disk. They differ in what they ask of a second server.
        """
        for name, value in zip(
            ("fsync", "full_page_writes", "synchronous_commit"), settings, strict=False
        ):
            if value == "off":
                raise StorageFailed(
                    f"{self._address!r} runs with {name} = off, so it may lose what it has "
                    "acknowledged; turn it on."
                )

    def _execute(self, statement: str, values: tuple[Any, ...]) -> Any:
        words = self._words.get(statement)
        if words is None:
            words = statement.replace("main.", self._prefix).replace("?", "%s")
            self._words[statement] = words
        try:
            # Bytes come as bytes; without values a statement may be several.
            return self.connection.execute(words, values or None)
        except self._driver.Error as error:
            self._break()
            raise self._failed(error) from None

    def query(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        cursor = self._execute(statement, values)
        return cursor.fetchall() if cursor.description is not None else []

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        """Run a statement and return how many rows it changed."""
        count: int = self._execute(statement, values).rowcount
        return count

    def begin(self, *, write: bool) -> None:
        """Begin a transaction; on a connection that died since, a new one is opened."""
        patience = self._address.patience
        try:
            self.connection.patience = patience.begin
            self._execute(_WRITE if write else _READ, ())
        except StorageFailed:
            self.connection, self.broken = self._address.connect(), False
            self.connection.patience = patience.begin
            self._execute(_WRITE if write else _READ, ())
        self.connection.patience = _ANSWER if write else patience.read

    def take_long(self) -> None:
        """Let the statements of this transaction take as long as they need."""
        self.connection.patience = _LONG

    def find_book(self, name: str, *, write: bool, fresh: bool = False) -> int | None:
        """Return a book's number, and where it is to be changed, lock it."""
        if not write:
            rows = self.query(_NUMBER, (name,))
            return rows[0][0] if rows else None
        rows = self.query(_LOCK, (name,))
        if not rows:
            return None
        number, version, *settings = rows[0]
        self._refuse_unsafe(tuple(settings))
        if version != latest_format():
            refuse_unknown_format(version, repr(self._address))
            raise InvalidState(f"{self._address!r} is in format {version} now; open it again.")
        return int(number)

    def now(self) -> int | None:
        """Return the server's time: machines that serve one board need not agree on theirs."""
        return int(self.query(_NOW)[0][0])

    def commit(self) -> None:
        """Commit; where no answer comes, nobody knows."""
        try:
            said = self.connection.execute("COMMIT").statusmessage
        except self._driver.Error as error:
            refused = error.diag.severity_nonlocalized == "ERROR" and error.sqlstate != "40003"
            uncertain = self.connection.closed or not refused
            self._break()
            raise self._failed(error, uncertain=uncertain) from None
        if said != "COMMIT":  # as after an error that was swallowed
            self._break()
            raise StorageFailed(f"{self._address!r} did not commit; nothing of the block stands.")

    def rollback(self) -> None:
        """Undo what was done since the beginning."""
        if self.broken:
            return
        try:
            self.connection.execute("ROLLBACK")
        except self._driver.Error:
            self._break()

    def close(self) -> None:
        """Close the connection."""
        with suppress(self._driver.Error):
            self.connection.close()

    def _break(self) -> None:
        connection = self.connection
        self.poison()
        with suppress(self._driver.Error):
            connection.close()

    def _failed(self, error: Exception, *, uncertain: bool = False) -> StorageFailed:
        said = self._address.clean(error)
        if uncertain:
            said += "; whether the last change stands is not known"
        state = "" if uncertain else getattr(error, "sqlstate", None) or ""
        kind = _KINDS.get(state, StorageFailed)
        return kind(f"{self._address!r} cannot be used: {said}.", uncertain=uncertain)


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
        self._address = PostgresAddress(url)
        self._schema = schema
        self._pool = Pool(partial(PostgresConnection, self._address, schema), PerBookLock)
        try:
            link = self._pool.acquire()
            try:
                self._prepare(link, create=create)
            finally:
                link.rollback()
                self._pool.release(link)
        except BaseException:
            self._pool.close()
            raise

    def __repr__(self) -> str:
        return f"<PostgresStorage: {self._address!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        """Travel to another process as an address; whoever reads the bytes reads the password."""
        return (_again, (self._address.url, self._schema))

    def limit_read_wait(self, seconds: float) -> None:
        """Wait so long at most: for a transaction to begin, on a new connection if need be."""
        # A connection that is kept is tried before a new one, which takes several messages.
        connect = max(2, int(0.6 * seconds))
        self._address.patience = PostgresTimeouts(connect, 0.4 * seconds, seconds)

    def _prepare(self, link: Connection, *, create: bool) -> None:
        """Find the tables; make or migrate them under a lock, in one transaction."""
        if self._format(link) == latest_format():
            return
        self._alone(link)
        version = self._format(link)  # others may have been here first
        if version is None:
            if not create:
                raise InvalidState(f"{self._address!r} holds no ledger in {self._schema!r}.")
            self._create(link)
        elif version < latest_format():
            self._keep_copy(link, version)
            migrate(version, link.query, _WORDS)
            link.query("UPDATE main.format SET version = ?", (latest_format(),))
        link.commit()

    def drop_schema(self) -> None:
        """Remove the schema with everything in it, for good: one in which something was tried."""
        link = self._pool.acquire()
        try:
            link.query(f'DROP SCHEMA IF EXISTS "{self._schema}" CASCADE')
        finally:
            self._pool.release(link)

    def _alone(self, link: Connection) -> None:
        link.begin(write=True)
        key = hashlib.sha256(f"ladderboard {self._schema}".encode()).digest()[:8]
        cast("PostgresConnection", link).take_long()
        link.query("SET LOCAL lock_timeout = '600s'")  # others may have much to copy
        link.query("SELECT pg_advisory_xact_lock(?)", (int.from_bytes(key, signed=True),))

    def _tables(self, link: Connection) -> set[str]:
        return {row[0] for row in link.query(_TABLES, (self._schema,))}

    def _format(self, link: Connection) -> int | None:
        """Return the format of the tables, or None where there are none at all."""
        found = self._tables(link)
        if not found:
            return None
        if not {"format", *TABLE_NAMES} <= found:
            raise InvalidState(
                f"The schema {self._schema!r} of {self._address!r} is not a ledger's."
            )
        rows = link.query("SELECT version FROM main.format")
        if len(rows) != 1:
            raise InvalidState(f"{self._address!r} is damaged: it does not say its format.")
        refuse_unknown_format(rows[0][0], repr(self._address), self._copies(link))
        return int(rows[0][0])

    def _create(self, link: Connection) -> None:
        if not link.query(_SCHEMA, (self._schema,)):
            link.query(f'CREATE SCHEMA "{self._schema}"')
        create_tables(link.query, _WORDS)
        link.query("CREATE TABLE main.format (version BIGINT NOT NULL)")
        link.query("INSERT INTO main.format (version) VALUES (?)", (latest_format(),))

    def _copies(self, link: Connection, part: str = "") -> list[str]:
        begin = self._before(part)
        rows = link.query("SELECT nspname::text FROM pg_catalog.pg_namespace")
        found = (row[0] for row in rows if row[0].startswith(begin))
        return [each for each in found if each[len(begin) :].replace("_", "").isdigit()]

    def _before(self, part: str) -> str:
        """Return how the names of copies begin that were made before a part's steps, or our own."""
        return f"{self._schema}_before_{part}_" if part else f"{self._schema}_before_"

    def _keep_copy(self, link: Connection, version: int, part: str = "") -> None:
        name = (
            f"{self._schema}_before_{part}_{version}"
            if part
            else f"{self._schema}_before_{version}"
        )
        to, count = name, 1
        while link.query(_SCHEMA, (to,)):  # who went back and comes again has one already
            count += 1
            to = f"{name}_{count}"
        self._copy(link, to)

    def _copy(self, link: Connection, to: str) -> None:
        """Copy all tables as they are; the books in the copy know that they are copies."""
        link.query("LOCK TABLE main.book IN EXCLUSIVE MODE")  # no block that writes is open now
        link.query(f'CREATE SCHEMA "{to}"')
        for name in sorted(self._tables(link)):
            for statement in _COPY:
                link.query(statement.format(to=to, name=name))
        link.query(_FLAG.format(to=to), (COPY, b"1"))
        link.query(_GO_ON.format(to=to), (f"{to}.book",))


def _again(url: str, schema: str) -> PostgresStorage:
    return PostgresStorage(url, schema=schema)
