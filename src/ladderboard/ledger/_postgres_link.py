"""A connection to PostgreSQL."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ladderboard.errors import DiskFull, InvalidState, ReadOnly, StorageFailed
from ladderboard.ledger._link import Link
from ladderboard.ledger._migrate import latest, refuse_unknown
from ladderboard.ledger._postgres_address import Address, load_psycopg

__all__ = ["PostgresLink"]

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


class PostgresLink(Link):
    """A connection whose statements name their schema."""

    def __init__(self, address: Address, schema: str) -> None:
        self._driver = load_psycopg()
        self._address = address
        self._prefix = f'"{schema}".'
        self._words: dict[str, str] = {}
        super().__init__(address.connect())
        self.connection.patience = address.patience.begin
        try:
            settings = self.run(f"SELECT {_SAFE}, current_setting('server_encoding')")[0]
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

    def run(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        cursor = self._execute(statement, values)
        return cursor.fetchall() if cursor.description is not None else []

    def change(self, statement: str, values: tuple[Any, ...] = ()) -> int:
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

    def book(self, name: str, *, write: bool, fresh: bool = False) -> int | None:
        """Return a book's number, and where it is to be changed, lock it."""
        if not write:
            rows = self.run(_NUMBER, (name,))
            return rows[0][0] if rows else None
        rows = self.run(_LOCK, (name,))
        if not rows:
            return None
        number, version, *settings = rows[0]
        self._refuse_unsafe(tuple(settings))
        if version != latest():
            refuse_unknown(version, repr(self._address))
            raise InvalidState(f"{self._address!r} is in format {version} now; open it again.")
        return int(number)

    def now(self) -> int | None:
        """Return the server's time: machines that serve one board need not agree on theirs."""
        return int(self.run(_NOW)[0][0])

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

    def undo(self) -> None:
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
        self.shut()
        with suppress(self._driver.Error):
            connection.close()

    def _failed(self, error: Exception, *, uncertain: bool = False) -> StorageFailed:
        said = self._address.clean(error)
        if uncertain:
            said += "; whether the last change stands is not known"
        state = "" if uncertain else getattr(error, "sqlstate", None) or ""
        kind = _KINDS.get(state, StorageFailed)
        return kind(f"{self._address!r} cannot be used: {said}.", uncertain=uncertain)
