"""Where a PostgreSQL database is, and the way there."""

from __future__ import annotations

from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import InvalidSetting, MissingDependency, StorageFailed
from ladderboard.ledger._link import NoWay

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import ModuleType

__all__ = ["Address", "Patience", "load_psycopg"]

_KEEPALIVE = 60  # seconds, unless the address says otherwise: no firewall forgets the connection
_SILENT = 5.0  # seconds for which nobody tries again where nobody answered


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


class Patience(NamedTuple):
    """How many seconds a silent server is waited for.

    ``connect`` is for a new connection, ``begin`` for the first statement of a transaction, which
    waits for nobody, and ``read`` for any other statement of one that only reads.
    """

    connect: int = 10
    begin: float = 5.0
    read: float = 45.0


class Address:
    """Where a database is, and what of that may be said."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        if scheme not in {"postgresql", "postgresql+psycopg"}:
            raise InvalidSetting(
                "The address of a PostgreSQL database must look like "
                "postgresql+psycopg://user@host/name."
            )
        self.url = f"postgresql://{rest}"
        self.patience = Patience()
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
            raise NoWay(said) from None

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
