"""A storage in a PostgreSQL database."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import select
import threading
import weakref
from contextlib import contextmanager, suppress
from functools import cache, lru_cache, partial
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
from ladderboard.ledger._storage._pool import (
    Connection,
    PerBookLock,
    Pool,
    WriterLock,
    combine_deferred,
    leak_reference,
)
from ladderboard.ledger._storage._schema import (
    TABLE_NAMES,
    create_tables,
    latest_format,
    migrate,
    refuse_unknown_format,
    select_from,
)
from ladderboard.ledger._storage._sql import COPY, Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from types import ModuleType

    from ladderboard.ledger._storage._pool import Deferred, Prefetch, Statement

_LOG = logging.getLogger("ladderboard.database")
_LOG.addHandler(logging.NullHandler())  # commands show the error itself
_REPORT_PAUSE = 60.0  # seconds between two reports that no connection can be opened
_KEEPALIVE = 60  # seconds between keepalives, unless the address says otherwise, for firewalls
_MAX_CONNECTIONS = 100  # of one process; the default of a whole PostgreSQL server
_ACQUIRE_STEP = 0.05  # seconds between two checks of why there is no connection yet
_ACQUIRE_TIMEOUT = 30.0  # seconds to wait for another thread's connection
_RETRY_PAUSE = 5.0  # seconds without a new attempt after a connection timed out
# Timeouts in seconds. A server that sends nothing for so long is considered gone: it was stopped,
# or a firewall dropped the connection.
_LOCK_TIMEOUT = 30  # to wait for a lock; the server enforces it
_STATEMENT_TIMEOUT = 45.0  # for a statement of a write transaction, so longer than for a lock
_COPY_TIMEOUT = 86400.0  # for copying whole tables
_ERROR_TYPES = {"53100": DiskFull, "25006": ReadOnly}
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# The timeouts end a wait for a lock, and a transaction of a client that is gone.
_WRITE = (
    "BEGIN ISOLATION LEVEL READ COMMITTED; "
    f"SELECT set_config('lock_timeout', '{_LOCK_TIMEOUT}s', true), "
    "set_config('idle_in_transaction_session_timeout', '300s', true)"
)
# Read with every lock, because the settings of a running server can change.
_SAFE = (
    "current_setting('fsync'), current_setting('full_page_writes'), "
    "current_setting('synchronous_commit')"
)
_LOCK = (
    f"SELECT id, (SELECT version FROM main.format), {_SAFE} "  # noqa: S608
    "FROM main.book WHERE name = ? FOR UPDATE"
)
_CHECK = f"SELECT version, {_SAFE} FROM main.format"  # noqa: S608
_NOW_COLUMN = "floor(extract(epoch FROM clock_timestamp()))::bigint AS now"
_NOW = f"SELECT {_NOW_COLUMN}"
_SELECT_BOOK = "SELECT id FROM main.book WHERE name = ?"
_TYPE_NAMES = {
    "blob": "BYTEA",
    "whole": "BIGINT",
    "prefix": "",  # of the name of an index
    "on": "main.",  # of the name of its table
    "real": "DOUBLE PRECISION",
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "tail": "",
}
# A plan is made once for each connection and statement, and must also suit tables that grow later:
# it uses an index wherever there is one.
_SELECT_SETTINGS = (
    f"SELECT {_SAFE}, current_setting('server_encoding'), "
    "set_config('plan_cache_mode', 'force_generic_plan', false), "
    "set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false)"
)
# The default method would compress stored files for a tenth of the server's processor time.
_COMPRESSION = (
    "SELECT set_config(name, 'lz4', false) FROM pg_catalog.pg_settings "
    "WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)"
)
_TABLES = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = ?"
_SCHEMA = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = ?"
_COPY = (
    'CREATE TABLE "{to}".{name} (LIKE main.{name} INCLUDING ALL)',
    'INSERT INTO "{to}".{name} OVERRIDING SYSTEM VALUE SELECT * FROM main.{name}',
)
_FLAG_AS_COPY = (
    'INSERT INTO "{to}".kept (book, name, value) SELECT id, ?, ? FROM "{to}".book '
    "ON CONFLICT (book, name) DO UPDATE SET value = excluded.value"
)
# The copy must not reuse numbers of books either.
_SET_SEQUENCE = (
    "SELECT setval(pg_get_serial_sequence(?, 'id'), COALESCE(max(id), 1), max(id) IS NOT NULL) "
    'FROM "{to}".book'
)


def load_psycopg() -> ModuleType:
    """Return the driver; if it is missing, raise an error that says what to install."""
    try:
        import psycopg  # noqa: PLC0415 - optional
    except ImportError:
        raise MissingDependency(
            "PostgreSQL needs psycopg: pip install 'ladderboard[server]'."
        ) from None
    return psycopg


@cache
def load_psycopg_pool() -> ModuleType:
    """Return psycopg's pool; if it is missing, raise an error that says what to install."""
    try:
        import psycopg_pool  # noqa: PLC0415 - optional
    except ImportError:
        raise MissingDependency(
            "PostgreSQL needs psycopg_pool: pip install 'ladderboard[server]'."
        ) from None
    # Errors are raised where a connection is needed; without logging they are not printed, too.
    logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
    return psycopg_pool


_TEXT, _BINARY = 0, 1  # formats of parameters and results
_PREPARE_AT = 3  # a statement is prepared when a connection runs it for the third time
_MAX_STATEMENTS = 500  # that a connection counts or has prepared


def _encode_text(value: str) -> bytes:
    if "\0" in value:
        raise load_psycopg().DataError("PostgreSQL text cannot contain NUL")
    return value.encode()


# How a parameter of each type is sent: the number of its type, its format, and its bytes. The
# server infers the types of text and NULL.
_ENCODERS: dict[type, tuple[int, int, Callable[[Any], bytes | None]]] = {
    int: (20, _TEXT, b"%d".__mod__),
    bytes: (17, _BINARY, bytes),
    float: (701, _TEXT, lambda value: repr(value).encode()),
    str: (0, _TEXT, _encode_text),
    type(None): (0, _TEXT, lambda _: None),
}


class Command(NamedTuple):
    """A statement as it is sent, with $1, $2 and so on, and its parameters."""

    text: bytes
    types: tuple[int, ...] = ()
    formats: tuple[int, ...] = ()
    values: tuple[bytes | None, ...] = ()


@lru_cache(maxsize=1024)
def _encoders_of(types: tuple[type, ...]) -> tuple[tuple[Any, ...], ...] | None:
    """Return the types, formats and encoders of parameters; None if one has another type."""
    if not _ENCODERS.keys() >= set(types):
        return None
    return tuple(zip(*(_ENCODERS[kind] for kind in types), strict=True)) or ((), (), ())


def _make_command(text: bytes, values: tuple[Any, ...]) -> Command | None:
    """Return a statement with its parameters; None if the driver must encode them."""
    known = _encoders_of(tuple(map(type, values)))
    if known is None:
        return None
    types, formats, encoders = known
    encoded = [encode(value) for encode, value in zip(encoders, values, strict=True)]
    return Command(text, types, formats, tuple(encoded))


@cache
def _split_commands(statements: str) -> tuple[Command, ...]:
    return tuple(Command(part.encode()) for part in statements.split("; "))


class Confirmation(NamedTuple):
    """How many commands the server confirms before it goes on, and within how many seconds."""

    commands: int
    seconds: float


class CommandRunner:
    """Sends commands to a server in pipeline mode, and prepares those that are repeated.

    psycopg's cursors take four times the processor time: docs/explanation/dependencies.md.
    """

    def __init__(self, pgconn: Any) -> None:
        self._pgconn = pgconn
        self._driver = load_psycopg()
        self._transformer: Any = self._driver.adapt.Transformer()
        # By statement: how often it was run, or the name under which it is prepared.
        self._statements: dict[tuple[bytes, tuple[int, ...]], int | bytes] = {}
        self._prepared = 0
        status = self._driver.pq.ExecStatus
        self._succeeded = {status.TUPLES_OK, status.COMMAND_OK}
        self._end = status.PIPELINE_SYNC

    def run(
        self, commands: Iterable[Command], timeout: float, confirm: Confirmation | None
    ) -> list[Any]:
        """Send commands in one message; return libpq's result of each."""
        results: list[Any] = []
        failed: Any = None
        try:
            expected = iter(self._send(commands, timeout, confirm))
            for result in self._receive(results, timeout, confirm):
                if result.status not in self._succeeded:
                    failed = failed or result
                elif next(expected):
                    results.append(result)
            self._pgconn.exit_pipeline_mode()
        except self._driver.Error as error:
            if failed is None:
                error.position = len(results)
                raise
        if failed is not None:
            refusal = self._driver.errors.error_from_result(failed)
            refusal.position = len(results)
            raise refusal
        return results

    def _send(
        self, commands: Iterable[Command], timeout: float, confirm: Confirmation | None
    ) -> list[bool]:
        """Send commands; return for each expected result whether it is one of a command."""
        pgconn, expected = self._pgconn, []
        confirmed = 0 if confirm is None else confirm.commands
        pgconn.enter_pipeline_mode()
        for number, command in enumerate(commands, 1):
            text, types, formats, values = command
            name = self._statements.get((text, types), 0)
            if isinstance(name, int) and self._count(command, name + 1):
                self._prepared += 1
                name = self._statements[text, types] = b"ladderboard%d" % self._prepared
                pgconn.send_prepare(name, text, types)
                expected.append(False)
            if isinstance(name, int):
                pgconn.send_query_params(text, values, types, formats, _BINARY)
            else:
                pgconn.send_query_prepared(name, values, formats, _BINARY)
            expected.append(True)
            if number == confirmed:
                pgconn.send_flush_request()
        pgconn.pipeline_sync()
        while pgconn.flush():
            self._wait(timeout, write=True)
            if _wait_for_socket(pgconn.socket, 0):
                pgconn.consume_input()
        return expected

    def _count(self, command: Command, uses: int) -> bool:
        """Count a use of a statement; return whether to prepare it."""
        if uses > 1 or len(self._statements) < _MAX_STATEMENTS:
            self._statements[command.text, command.types] = uses
        return uses >= _PREPARE_AT

    def _receive(
        self, results: list[Any], timeout: float, confirm: Confirmation | None
    ) -> Iterator[Any]:
        """Yield results until the server has answered everything."""
        pgconn = self._pgconn
        while True:
            while pgconn.is_busy():
                first = confirm is not None and len(results) < confirm.commands
                self._wait(confirm.seconds if confirm is not None and first else timeout)
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:  # between two commands
                if pgconn.status == self._driver.pq.ConnStatus.BAD:
                    raise self._driver.OperationalError(pgconn.get_error_message())
            elif result.status == self._end:
                return
            else:
                yield result

    def _wait(self, seconds: float, *, write: bool = False) -> None:
        if not _wait_for_socket(self._pgconn.socket, seconds, write=write):
            message = f"no response from the server for {seconds:g} seconds"
            raise self._driver.OperationalError(message)

    def rows(self, result: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a result."""
        if not result.nfields:
            return []
        self._transformer.set_pgresult(result)
        rows: list[tuple[Any, ...]] = self._transformer.load_rows(0, result.ntuples, tuple)
        return rows


def _wait_for_socket(socket: int, seconds: float, *, write: bool = False) -> bool:
    """Wait until a socket can be read, or written to; return False after so many seconds."""
    if not hasattr(select, "poll"):  # on Windows
        return any(select.select([socket], [socket] if write else [], [], seconds))
    poll = select.poll()
    poll.register(socket, select.POLLIN | (select.POLLOUT if write else 0))
    return bool(poll.poll(1000 * seconds))


@cache
def _connection_class() -> Any:
    """Return a class of connections with a timeout on the client's side, bound to this process.

    A stopped server or machine does not close its connections: nothing arrives any more, and no
    timeout that the server enforces can help. In a forked process, statements fail, and closing
    does nothing: it would end the parent's session.
    """
    psycopg = load_psycopg()

    class ProcessConnection(psycopg.Connection):  # type: ignore[name-defined,misc]
        """A connection that fails when nothing arrives for ``timeout`` seconds."""

        timeout = 45.0
        opened_at = 0.0
        process = 0
        pool: Any = None
        runner: CommandRunner

        @classmethod
        def connect(cls, *args: Any, address: PostgresAddress, **kwargs: Any) -> Any:
            """Open a connection, and record in the address why this failed."""
            return address.open_connection(partial(super().connect, *args, **kwargs))

        def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
            """Wait for an answer."""
            if self.process not in {0, os.getpid()}:
                raise psycopg.OperationalError("the connection belongs to the parent process")
            return super().wait(_wait_with_timeout(gen, self.timeout), *args, **kwargs)

        def close(self) -> None:
            """Close the connection, unless it is the parent process's."""
            if self.process in {0, os.getpid()}:
                super().close()

        def run(self, commands: Iterable[Command], confirm: Confirmation | None = None) -> Any:
            """Send commands in one message; return libpq's result of each.

            An error says in ``position`` how many commands had succeeded. After any error the
            connection must be closed.
            """
            if self.process not in {0, os.getpid()}:
                raise psycopg.OperationalError("the connection belongs to the parent process")
            try:
                return self.runner.run(commands, self.timeout, confirm)
            except psycopg.Error:
                raise
            except BaseException:  # such as Ctrl-C: answers may still arrive
                self.close()
                raise

    return ProcessConnection


def _wait_with_timeout(gen: Any, seconds: float) -> Generator[Any, Any, Any]:
    """Yield what the driver waits for; raise when nothing has arrived for so many seconds."""
    deadline = 0.0
    try:
        awaited = next(gen)
        while True:
            ready = yield awaited
            if ready:
                deadline = 0.0
            elif not deadline:  # the driver polls ten times a second
                deadline = monotonic() + seconds
            elif monotonic() > deadline:
                message = f"no response from the server for {seconds:g} seconds"
                raise load_psycopg().OperationalError(message)
            awaited = gen.send(ready)
    except StopIteration as done:
        return done.value


class PoolExhausted(StorageFailed):
    """No connection can be opened now; the database may have reached its maximum."""


class ConnectFailure(NamedTuple):
    """Why a connection could not be opened, and when."""

    time: float
    error: StorageFailed


class PostgresTimeouts(NamedTuple):
    """Timeouts in seconds for a server that does not respond.

    ``connect`` is for a new connection, ``begin`` for the first statement of a transaction, which
    needs no lock, and ``read`` for the other statements of a read transaction.
    """

    connect: int = 10
    begin: float = 5.0
    read: float = 45.0


class PostgresAddress:
    """The address of a database; its text form leaves out the password."""

    def __init__(self, url: str) -> None:
        scheme, _, location = url.partition("://")
        if scheme not in {"postgresql", "postgresql+psycopg"}:
            raise InvalidSetting(
                "The address of a PostgreSQL database must look like "
                "postgresql+psycopg://user@host/name."
            )
        self.url = f"postgresql://{location}"
        self.timeouts = PostgresTimeouts()
        self.failure: ConnectFailure | None = None  # of the last connection that was not opened
        self._retry_after = 0.0  # no attempt to connect before this time
        self._lost = False  # it was logged that no connection can be opened
        self._reported_at = -_REPORT_PAUSE
        psycopg = load_psycopg()
        try:
            self._parts = psycopg.conninfo.conninfo_to_dict(self.url)
        except psycopg.Error:  # its message may quote the password
            self._parts = {"port": "unreadable"}
        if (
            _has_unquoted_password(location)
            or not str(self._parts.get("port", "1")).replace(",", "").isdigit()
        ):
            raise InvalidSetting(
                "The address of the PostgreSQL database cannot be read; special characters in "
                "names and passwords are written as %XX."
            )

    def __repr__(self) -> str:
        """Return the address without the password."""
        name, host = self._parts.get("dbname", ""), self._parts.get("host", "")
        return f"the PostgreSQL database {name!r} at {host!r}"

    def connect_options(self) -> dict[str, Any]:
        """Return the driver's options for a new connection."""
        default = {"connect_timeout": self.timeouts.connect, "keepalives_idle": _KEEPALIVE}
        defaults = {name: value for name, value in default.items() if name not in self._parts}
        return {"autocommit": True, "client_encoding": "UTF8", "address": self, **defaults}

    def connect(self) -> Any:
        """Open a connection outside of a pool."""
        return _connection_class().connect(self.url, **self.connect_options())

    def open_connection(self, connect: Callable[[], Any]) -> Any:
        """Open a connection with the driver; record why it failed."""
        psycopg = load_psycopg()
        if monotonic() < self._retry_after and self.failure is not None:
            raise self._record(self.failure.error)  # or each thread would wait in turn
        try:
            connection = connect()
        except psycopg.Error as error:
            message = f"Cannot connect to {self!r}: {self.safe_message(error)}."
            if isinstance(error, psycopg.errors.ConnectionTimeout):
                self._retry_after = monotonic() + _RETRY_PAUSE
                raise self._record(StorageFailed(message)) from None
            raise self._record(PoolExhausted(message)) from None
        connection.process, connection.opened_at = os.getpid(), monotonic()
        connection.runner = CommandRunner(connection.pgconn)
        connection.timeout = self.timeouts.begin
        return connection

    def check_server(self, connection: Any) -> None:
        """Refuse a server with settings that do not suit a ledger; record why."""
        psycopg = load_psycopg()
        try:
            settings = connection.execute(_SELECT_SETTINGS).fetchone()
            connection.execute(_COMPRESSION)
            self.refuse_unsafe(settings)
            if settings[3] != "UTF8":
                raise StorageFailed(f"{self!r} must be encoded in UTF8, not {settings[3]}.")
        except psycopg.Error as error:
            connection.close()
            message = f"Cannot connect to {self!r}: {self.safe_message(error)}."
            raise self._record(StorageFailed(message)) from None
        except StorageFailed as error:
            connection.close()
            raise self._record(error) from None
        if self._lost:
            self._lost = False
            _LOG.warning("Connected to %r again.", self)

    def _record(self, error: StorageFailed) -> StorageFailed:
        """Keep an error for those who wait; log the first one of an outage."""
        self.failure = ConnectFailure(monotonic(), error)
        if not self._lost and monotonic() >= self._reported_at + _REPORT_PAUSE:
            self._lost, self._reported_at = True, monotonic()
            _LOG.warning("%s", error)
        return error

    def refuse_unsafe(self, settings: tuple[Any, ...]) -> None:
        """Refuse a server that may lose committed transactions.

        For ``synchronous_commit``, ``local`` and ``remote_write`` are as good as ``on`` here: a
        commit waits until this server's log is on its disk. They differ in what they require of a
        replica.
        """
        for name, value in zip(
            ("fsync", "full_page_writes", "synchronous_commit"), settings, strict=False
        ):
            if value == "off":
                raise StorageFailed(
                    f"{self!r} runs with {name} = off, so it may lose committed "
                    "transactions; turn it on."
                )

    def safe_message(self, error: Exception) -> str:
        """Return the first line of a driver's or server's message, without any password."""
        diag = getattr(error, "diag", None)
        message = (diag.message_primary if diag is not None else None) or str(error)
        message = message.strip().partition("\n")[0].rstrip(".:")
        for key in ("password", "sslpassword"):
            if self._parts.get(key):
                message = message.replace(str(self._parts[key]), "***")
        return message


_LOOKUP = re.compile(r"SELECT (\w+) FROM main\.(\w+) WHERE book = \? AND (\w+) = \?")
_MAX_KEYS = 8  # of one statement, which is prepared for each number of keys
_NONE_CHANGED_STATES = {"23505", "22012"}  # a key that exists, a division by zero
_FAIL_IF_NONE_CHANGED = "WITH changed AS ({} RETURNING 1) SELECT 1 / COUNT(*) FROM changed"


@lru_cache(maxsize=256)
def _fail_if_none_changed(statement: str) -> str:
    """Return a statement that fails if it changes no row, so that the commit can follow at once."""
    if statement.startswith("INSERT"):
        return statement.removesuffix(" ON CONFLICT DO NOTHING")
    return _FAIL_IF_NONE_CHANGED.format(statement)


class _Lookup(NamedTuple):
    """A statement to read with, and the one for which it reads the rows of several keys."""

    read: Statement
    statement: str
    keys: tuple[Any, ...] = ()


def _combine_lookups(reads: Sequence[Statement]) -> Iterator[_Lookup]:
    """Yield statements that read several rows of a table by their keys, instead of one each."""
    keys: dict[tuple[str, Any], list[Any]] = {}
    for statement, values in reads:
        if _LOOKUP.fullmatch(statement) is None:
            yield _Lookup((statement, values), statement)
        else:
            keys.setdefault((statement, values[0]), []).append(values[1])
    for (statement, book), book_keys in keys.items():
        for first in range(0, len(book_keys), _MAX_KEYS):
            chunk = tuple(book_keys[first : first + _MAX_KEYS])
            yield _Lookup(
                (_lookup_several(statement, len(chunk)), (book, *chunk)), statement, chunk
            )


@lru_cache(maxsize=64)
def _lookup_several(statement: str, count: int) -> str:
    """Return a statement that reads a column by a key, for several keys: each key and its column.

    >>> _lookup_several("SELECT a FROM main.b WHERE book = ? AND c = ?", 2)
    'SELECT c, a FROM main.b WHERE book = ? AND c IN (?, ?)'
    """
    column, table, key = _LOOKUP.fullmatch(statement).groups()  # type: ignore[union-attr]
    if count == 1:
        return statement
    places = ", ".join("?" * count)
    return select_from(table, f"{key}, {column}", f"WHERE book = ? AND {key} IN ({places})")


def _has_unquoted_password(location: str) -> bool:
    """Return whether the address seems to have an unquoted @, / or ? in its password."""
    authority, _, path = location.partition("/")
    user, _, query = authority.partition("?")
    return user.count("@") > 1 or "@" in query or "@" in path.partition("?")[0]


@cache
def _pool_class() -> Any:
    """Return psycopg's pool, but with the connection used last given out first.

    On the server each connection is a process with its own caches. A few that stay busy take less
    processor time than many that take turns.
    """
    psycopg_pool = load_psycopg_pool()

    class LastUsedFirstPool(psycopg_pool.ConnectionPool):  # type: ignore[name-defined,misc]
        """A pool that closes the connection unused for longest when there are too many."""

        def _get_ready_connection(self, timeout: float | None) -> Any:
            self._pool.rotate()  # psycopg's pool takes the first, and appends those given back
            return super()._get_ready_connection(timeout)

    return LastUsedFirstPool


class _HeldConnection(threading.local):
    """The connection that has read ahead for a block of this thread."""

    connection: PostgresConnection | None = None


class PostgresPool(Pool):
    """The connections to a server: psycopg's own pool, with one for each process.

    psycopg's pool opens connections in the background and lets its callers wait until a timeout,
    whatever happens. ``acquire`` ends such a wait as soon as connecting has failed.
    """

    def __init__(self, address: PostgresAddress, schema: str) -> None:
        self.address = address
        self.prefix = f'"{schema}".'
        self.translations: dict[str, bytes] = {}  # of statements, with the schema
        self.book_ids: dict[str, int] = {}  # by name; a number is never reused
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._drained_at = 0.0
        self._finalizer: weakref.finalize[..., Any] | None = None
        self._owners: list[int] = []  # threads that use a connection
        self.writer_lock: WriterLock = PerBookLock()
        self.held = _HeldConnection()
        self._pool: Any = None

    def _open_pool(self) -> Any:
        """Return psycopg's pool of this process."""
        with self._lock:
            if self._pool is None:
                self._pool = _pool_class()(
                    self.address.url,
                    connection_class=_connection_class(),
                    configure=self.address.check_server,
                    kwargs=self.address.connect_options,
                    min_size=0,
                    max_size=_MAX_CONNECTIONS,
                    reconnect_timeout=0,  # errors are reported at once
                    open=True,
                )
                self._finalizer = weakref.finalize(self, _close_pool, self._pool, os.getpid())
            return self._pool

    def acquire(self) -> PostgresConnection:
        """Return a connection; if the database allows no more, wait for another thread's."""
        self._leave_parents_pool()
        owner = threading.get_ident()
        connection = self._get()
        self._owners.append(owner)
        return PostgresConnection(self, connection, owner)

    def acquire_alone(self) -> Connection:
        """Return the connection that has read ahead for this thread, or another one."""
        self._leave_parents_pool()
        connection = self.held.connection
        return super().acquire_alone() if connection is None or connection.broken else connection

    def _leave_parents_pool(self) -> None:
        """Start anew in a forked process.

        The parent's pool stays as it is: its locks may be held, and closing its connections would
        end the parent's sessions.
        """
        if self._process != os.getpid():
            leak_reference(self._pool)
            self._reset()

    def _get(self) -> Any:
        pool_errors = load_psycopg_pool()
        start = monotonic()
        while True:
            pool = self._pool or self._open_pool()
            try:
                connection = pool.getconn(timeout=_ACQUIRE_STEP)
                connection.pool = pool
                return connection  # noqa: TRY300
            except pool_errors.PoolClosed:  # by another thread
                continue
            except pool_errors.PoolTimeout:
                failure = self.address.failure
            if failure is not None and failure.time >= start and self._is_final(failure.error):
                raise StorageFailed(str(failure.error)) from None
            if monotonic() > start + _ACQUIRE_TIMEOUT:
                raise StorageFailed(
                    f"Timed out after {_ACQUIRE_TIMEOUT:.0f} seconds waiting for a connection to "
                    f"{self.address!r}."
                )

    def _is_final(self, error: StorageFailed) -> bool:
        """Return whether waiting for another thread's connection does not help."""
        me = threading.get_ident()
        return not isinstance(error, PoolExhausted) or all(owner == me for owner in self._owners)

    def replace(self, connection: PostgresConnection) -> None:
        """Use a new connection instead of one that has died while it was idle."""
        dead, connection.pooled = connection.pooled, None
        if dead.opened_at > self._drained_at:  # the other idle ones died as well
            self._drained_at = monotonic()
            dead.pool.drain()
        dead.pool.putconn(dead)
        connection.connection = connection.pooled = self._get()
        connection.broken = False

    def release(self, connection: Connection) -> None:
        """Take a connection back; psycopg's pool discards it if it was closed."""
        connection = cast("PostgresConnection", connection)
        if connection is self.held.connection:
            return  # when its block ends
        pooled = connection.pooled
        if pooled is not None and pooled.process != os.getpid():
            return  # of the parent process
        self._owners.remove(connection.owner)
        if pooled is not None:
            pooled.pool.putconn(pooled)

    def close(self) -> None:
        """Close all idle connections now, and the others when their transactions end."""
        self._leave_parents_pool()
        with self._lock:
            self._pool = None
            if self._finalizer is not None:
                self._finalizer()


def _close_pool(pool: Any, process: int) -> None:
    if process == os.getpid():
        pool.close(timeout=1.0)


class PostgresConnection(Connection):
    """A connection that adds the schema to the statements."""

    reads_ahead = True

    def __init__(self, pool: PostgresPool, connection: Any, owner: int) -> None:
        super().__init__(connection)
        self.pooled: Any = connection  # also when it is broken; None if it was given back
        self.owner = owner
        self._driver = load_psycopg()
        self._pool = pool
        self._address = pool.address
        self._prefix = pool.prefix
        self._translations = pool.translations
        self._book_ids = pool.book_ids
        self._begin: tuple[Command, ...] = ()  # begins the transaction; not sent yet
        self._writes = False
        self._to_prefetch: list[Statement] = []
        self._alone = False  # whether the next statement is the first, outside of a transaction

    def _run(self, statement: str, values: tuple[Any, ...]) -> Any:
        """Run a statement, with everything before it that was not sent yet; return its result."""
        command = self._make_command(statement, values) if values or ";" not in statement else None
        if command is not None:
            return self._communicate(command)[-1]
        # Several statements without values, or a value of a type that only the driver knows.
        self._communicate()
        try:
            translated = self._with_schema(statement).replace("?", "%s")
            execute = self.connection.execute
            return execute(translated, values or None, binary=bool(values)).pgresult
        except self._driver.Error as error:
            self._break()
            raise self._translate_error(error) from None

    def _make_command(self, statement: str, values: tuple[Any, ...]) -> Command | None:
        """Return a statement as it is sent; None if the driver must encode its values."""
        try:
            return _make_command(self._translate(statement), values)
        except self._driver.Error as error:
            self._break()
            raise self._translate_error(error) from None

    def _communicate(self, *commands: Command, commit: bool = False) -> list[Any]:
        """Send what begins the transaction, the deferred statements, and commands."""
        begin, self._begin = self._begin, ()
        deferred, self._deferred = combine_deferred(self._deferred), []
        commands = (*begin, *map(self._make_deferred, deferred), *commands)
        if not commands:
            return []
        try:
            results = self._run_commands(commands, begin)
        except self._driver.Error as error:
            # Before the commit, only the loss of the connection makes its outcome uncertain.
            refused = error.diag.severity_nonlocalized == "ERROR" and error.sqlstate != "40003"
            uncertain = commit and not refused
            index = getattr(error, "position", 0) - len(begin)
            self._break()
            refusal = deferred[index].none_changed if 0 <= index < len(deferred) else None
            if refusal is not None and error.sqlstate in _NONE_CHANGED_STATES:
                raise InvalidState(refusal) from None
            raise self._translate_error(error, uncertain=uncertain) from None
        return results

    def _run_commands(self, commands: tuple[Command, ...], begin: tuple[Command, ...]) -> list[Any]:
        """Send commands; use another connection if this one has died while it was idle."""
        if not begin and not self._alone:
            results: list[Any] = self.connection.run(commands)
            return results
        timeouts, first = self._address.timeouts, self._alone
        self._alone = False
        following = _STATEMENT_TIMEOUT if self._writes and begin else timeouts.read
        # A write may wait for a lock: the server confirms first that the transaction has begun.
        confirm = Confirmation(len(begin), timeouts.begin) if begin and self._writes else None
        timeout = timeouts.begin if confirm is None else following
        self.connection.timeout = timeout
        try:
            results = self.connection.run(commands, confirm)
        except self._driver.Error as error:
            alive = error.diag.severity_nonlocalized == "ERROR"
            dead = not getattr(error, "position", 0) and not alive
            if not (dead or first):
                raise
            self._break()
            self._pool.replace(self)
            self.connection.timeout = timeout
            results = self.connection.run(commands, confirm)
        self.connection.timeout = following
        return results

    def _with_schema(self, statement: str) -> str:
        return statement.replace("main.", self._prefix).replace("NULL AS now", _NOW_COLUMN)

    def _translate(self, statement: str) -> bytes:
        translated = self._translations.get(statement)
        if translated is None:
            first, *others = self._with_schema(statement).split("?")
            parts = [first, *(f"${number}{part}" for number, part in enumerate(others, 1))]
            translated = self._translations[statement] = "".join(parts).encode()
        return translated

    def defer(
        self, statement: str, values: tuple[Any, ...], none_changed: str | None = None
    ) -> None:
        """Send a statement with the next one; an error is raised when they are sent."""
        ours = not self.broken and self.pooled.process == os.getpid()
        if ours and _encoders_of(tuple(map(type, values))) is not None:
            super().defer(statement, values, none_changed)
        else:
            self._run(
                statement if none_changed is None else _fail_if_none_changed(statement), values
            )

    def _run_deferred(self) -> None:
        self._communicate()

    def _make_deferred(self, deferred: Deferred) -> Command:
        statement, values, none_changed, _ = deferred
        text = statement if none_changed is None else _fail_if_none_changed(statement)
        return cast("Command", self._make_command(text, values))

    def query(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        result = self._run(statement, values)
        rows: list[tuple[Any, ...]] = self.connection.runner.rows(result)
        return rows

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        """Run a statement and return how many rows it changed."""
        self.prefetched = {}
        count: int = self._run(statement, values).command_tuples or 0
        return count

    def prefetch(self, book: str, reads: Prefetch) -> None:
        """Send statements in one message with the lock of a book that was found before."""
        number = self._book_ids.get(book)
        self._to_prefetch = [] if number is None else list(dict.fromkeys(reads(number)))

    def read_ahead(self, statements: Iterable[Statement]) -> None:
        """Run statements in one message, unless the driver must encode their values."""
        reads = [read for read in dict.fromkeys(statements) if read not in self.prefetched]
        lookups = list(_combine_lookups(reads))
        if not lookups:
            return
        commands = [self._make_command(*lookup.read) for lookup in lookups]
        if None in commands:
            return
        results = self._communicate(*cast("list[Command]", commands))[-len(lookups) :]
        for lookup, result in zip(lookups, results, strict=True):
            rows = self.connection.runner.rows(result)
            if len(lookup.keys) > 1:
                statement, book = lookup.statement, lookup.read[1][0]
                for key in lookup.keys:
                    rows_of_key = [row[1:] for row in rows if row[0] == key]
                    self.prefetched[statement, (book, key)] = rows_of_key
            else:
                self.prefetched[lookup.read] = rows

    def _lock_and_prefetch(self, name: str) -> list[tuple[Any, ...]]:
        """Lock a book, then run the statements to prefetch; return the rows of the lock."""
        lock = (_LOCK, (name,))
        reads, self._to_prefetch = self._to_prefetch, []
        self.read_ahead((lock, *reads))
        return self.query_prefetched(*lock)

    def begin(self, *, write: bool) -> None:
        """Begin a transaction with the next statement."""
        self._begin, self._writes = _split_commands(_WRITE if write else _READ), write

    def begin_alone(self) -> None:
        """Expect the first statement soon; open a new connection if this one has died."""
        self._alone = True

    def allow_long_statements(self) -> None:
        """Allow a day for each statement of this transaction."""
        self.connection.timeout = _COPY_TIMEOUT

    def find_book(self, name: str, *, write: bool, fresh: bool = False) -> int | None:
        """Return a book's number; with ``write``, lock its row."""
        if not write:
            number: int | None = self._book_ids.get(name)
            if number is None and (rows := self.query(_SELECT_BOOK, (name,))):
                number = self._book_ids[name] = rows[0][0]
            return number
        rows = self._lock_and_prefetch(name)
        if not rows:
            return None
        number, *checked = rows[0]
        self._check_format_and_settings(*checked)
        if not fresh:
            self._book_ids[name] = number
        return int(number)

    def check_before_write(self) -> None:
        """Check what a book's lock checks as well."""
        self._check_format_and_settings(*self.query(_CHECK)[0])

    def _check_format_and_settings(self, version: int, *settings: Any) -> None:
        self._address.refuse_unsafe(settings)
        if version != latest_format():
            refuse_unknown_format(version, repr(self._address))
            raise InvalidState(f"{self._address!r} is in format {version} now; open it again.")

    def now(self) -> int | None:
        """Return the server's time, since the clocks of machines that serve a board can differ."""
        return int(self.query(_NOW)[0][0])

    def commit(self) -> None:
        """Commit; if the server does not confirm it, the error is ``uncertain``."""
        if self._begin:
            if not self._deferred:
                self._begin = ()
                return
            # Sent first: a message that begins is sent again if there is no answer, a commit never.
            deferred, self._deferred = self._deferred, []
            self._communicate()
            self._deferred = deferred
        results = self._communicate(Command(b"COMMIT"), commit=True)
        if results[-1].command_status != b"COMMIT":  # as after a suppressed error
            self._break()
            raise StorageFailed(
                f"{self._address!r} did not commit; the transaction was rolled back."
            )

    def rollback(self) -> None:
        """Roll back the transaction."""
        begun = not self._begin
        self._begin, self._deferred = (), []
        if begun and not self.broken:
            with suppress(StorageFailed):
                self._communicate(Command(b"ROLLBACK"))

    def _break(self) -> None:
        connection = self.connection
        self.poison()
        with suppress(self._driver.Error):
            connection.close()

    def _translate_error(self, error: Exception, *, uncertain: bool = False) -> StorageFailed:
        message = self._address.safe_message(error)
        if uncertain:
            message += "; the last change may or may not have been committed"
        state = "" if uncertain else getattr(error, "sqlstate", None) or ""
        kind = _ERROR_TYPES.get(state, StorageFailed)
        return kind(f"{self._address!r} cannot be used: {message}.", uncertain=uncertain)


class PostgresStorage(Storage):
    """Books in a schema of a PostgreSQL database, for many processes and machines.

    A writer locks the row of its book. A server that may lose committed transactions is refused.

    Parameters
    ----------
    url
        ``postgresql://`` or ``postgresql+psycopg://user:password@host/name``.
    create
        Create the tables if they are missing; several processes may do so at once.
    schema
        The schema of the tables.
    """

    _type_names = _TYPE_NAMES
    reads_ahead = True

    def __init__(self, url: str, *, create: bool = False, schema: str = "ladderboard") -> None:
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,39}", schema):
            raise InvalidSetting(
                f"A schema's name must be at most 40 letters a-z, digits and _, not {schema!r:.80}."
            )
        self._address = PostgresAddress(url)
        self._schema = schema
        self._pool: PostgresPool = PostgresPool(self._address, schema)
        try:
            connection = self._pool.acquire()
            try:
                self._prepare(connection, create=create)
            finally:
                connection.rollback()
                self._pool.release(connection)
        except BaseException:
            self._pool.close()
            raise

    def __repr__(self) -> str:
        return f"<PostgresStorage: {self._address!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as an address, with the password."""
        return (_reopen, (self._address.url, self._schema))

    def limit_read_wait(self, seconds: float) -> None:
        """Limit how long a read waits, with opening a new connection if need be."""
        # An open connection is tried first, then a new one, which takes several messages.
        connect = max(2, int(0.6 * seconds))
        self._address.timeouts = PostgresTimeouts(connect, 0.4 * seconds, seconds)

    @contextmanager
    def read_ahead(self, statements: Iterable[Statement]) -> Iterator[None]:
        """Run statements in one message, for what this thread reads in the block."""
        connection, thread = self._pool.acquire(), self._pool.held
        before = thread.connection
        try:
            connection.begin_alone()
            connection.read_ahead(statements)
            thread.connection = connection
            yield
        finally:
            thread.connection = before
            self._pool.release(connection)

    def _prepare(self, connection: Connection, *, create: bool) -> None:
        """Check the tables; create or migrate them under a lock, in one transaction."""
        if self._format(connection) == latest_format():
            return
        self._begin_exclusive(connection)
        version = self._format(connection)  # another process may have been faster
        if version is None:
            if not create:
                raise InvalidState(f"{self._address!r} holds no ledger in {self._schema!r}.")
            self._create(connection)
        elif version < latest_format():
            self._copy_before_migration(connection, version)
            migrate(version, connection.query, _TYPE_NAMES)
            connection.query("UPDATE main.format SET version = ?", (latest_format(),))
        connection.commit()

    def drop_schema(self) -> None:
        """Delete the schema with everything in it, for good; for schemas made for a trial."""
        connection = self._pool.acquire()
        try:
            connection.query(f'DROP SCHEMA IF EXISTS "{self._schema}" CASCADE')
        finally:
            self._pool.release(connection)

    def _begin_exclusive(self, connection: Connection) -> None:
        connection.begin(write=True)
        key = hashlib.sha256(f"ladderboard {self._schema}".encode()).digest()[:8]
        connection.query(
            "SET LOCAL lock_timeout = '600s'"
        )  # another migration may be copying tables
        cast("PostgresConnection", connection).allow_long_statements()
        connection.query("SELECT pg_advisory_xact_lock(?)", (int.from_bytes(key, signed=True),))

    def _tables(self, connection: Connection) -> set[str]:
        return {row[0] for row in connection.query(_TABLES, (self._schema,))}

    def _format(self, connection: Connection) -> int | None:
        """Return the format of the tables, or None if there are none."""
        tables = self._tables(connection)
        if not tables:
            return None
        if not {"format", *TABLE_NAMES} <= tables:
            raise InvalidState(
                f"The schema {self._schema!r} of {self._address!r} is not a ledger's."
            )
        rows = connection.query("SELECT version FROM main.format")
        if len(rows) != 1:
            raise InvalidState(f"{self._address!r} is damaged: its format is missing.")
        refuse_unknown_format(rows[0][0], repr(self._address), self._copies(connection))
        return int(rows[0][0])

    def _create(self, connection: Connection) -> None:
        if not connection.query(_SCHEMA, (self._schema,)):
            connection.query(f'CREATE SCHEMA "{self._schema}"')
        create_tables(connection.query, _TYPE_NAMES)
        connection.query("CREATE TABLE main.format (version BIGINT NOT NULL)")
        connection.query("INSERT INTO main.format (version) VALUES (?)", (latest_format(),))

    def _copies(self, connection: Connection, module_name: str = "") -> list[str]:
        prefix = self._copy_prefix(module_name)
        rows = connection.query("SELECT nspname::text FROM pg_catalog.pg_namespace")
        schemas = (row[0] for row in rows if row[0].startswith(prefix))
        return [name for name in schemas if name[len(prefix) :].replace("_", "").isdigit()]

    def _copy_prefix(self, module_name: str) -> str:
        """Return the prefix of the names of copies made before a module's or our own migrations."""
        return f"{self._schema}_before_{module_name}_" if module_name else f"{self._schema}_before_"

    def _copy_before_migration(
        self, connection: Connection, version: int, module_name: str = ""
    ) -> None:
        name = (
            f"{self._schema}_before_{module_name}_{version}"
            if module_name
            else f"{self._schema}_before_{version}"
        )
        to, count = name, 1
        while connection.query(_SCHEMA, (to,)):  # there is one after an upgrade that was undone
            count += 1
            to = f"{name}_{count}"
        self._copy(connection, to)

    def _copy(self, connection: Connection, to: str) -> None:
        """Copy all tables as they are, and flag the books in the copy as copies."""
        connection.query(
            "LOCK TABLE main.book IN EXCLUSIVE MODE"
        )  # waits for open write transactions
        connection.query(f'CREATE SCHEMA "{to}"')
        for name in sorted(self._tables(connection)):
            for statement in _COPY:
                connection.query(statement.format(to=to, name=name))
        connection.query(_FLAG_AS_COPY.format(to=to), (COPY, b"1"))
        connection.query(_SET_SEQUENCE.format(to=to), (f"{to}.book",))


def _reopen(url: str, schema: str) -> PostgresStorage:
    return PostgresStorage(url, schema=schema)
