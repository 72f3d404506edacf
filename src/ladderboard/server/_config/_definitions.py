"""All settings of a server: their types, names, meanings and environment variables.

The table ``SETTINGS`` lists every setting; nothing else can be set. The settings file, the
environment, ``ladderboard settings`` and docs/reference/settings.md are made from it or compared
with it, and so are the fields of ``ServerConfig`` and ``Settings``.

A type's ``read`` gets a name for the error message and the given value; it returns the value or
raises. ``parse_text`` turns text into what TOML would have given; text that it cannot parse it
returns unchanged, and ``read`` refuses that.
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard import _settings
from ladderboard.board import has_libpq_password
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SQLITE = "sqlite:///"
# Strict: a password with @ or / in it must not be taken for a host.
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z+]+)://(?:(?P<user>[^:@/?#]*)(?P<password>:[^@/?#]*)?@)?"
    r"(?P<place>[^@?#]*)(?:\?(?P<query>[^@#]*))?"
)
_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}
CONFIG = "LADDERBOARD_CONFIG"
_PREFIX = "LADDERBOARD_"


def check_database(name: str, address: str) -> None:
    """Refuse a libpq connection string, which would become a file with a password in its name."""
    if has_libpq_password(address):
        raise InvalidSetting(
            f"{name} must be a path, sqlite:///path or postgresql+psycopg://user@host/name; the "
            "current value is hidden."
        )


def sqlite_path(address: str) -> str | None:
    """Return the path of an SQLite database; None for another database."""
    if address.startswith(_SQLITE):
        return address.removeprefix(_SQLITE)
    return None if "://" in address else address


def has_password(address: str) -> bool:
    """Tell whether a database address holds, or may hold, a password.

    >>> has_password("boards.db"), has_password("postgresql://me@there/boards")
    (False, False)
    >>> has_password("postgresql://me:secret@there/boards")
    True
    """
    return without_password(address) != address


def without_password(address: str) -> str:
    """Return a database address with its password replaced by ``***``.

    >>> without_password("postgresql+psycopg://me:secret@there/boards")
    'postgresql+psycopg://me:***@there/boards'
    >>> without_password("postgresql://me:se/cr@et@there/boards")
    'postgresql://***'
    """
    if has_libpq_password(address):
        return "***"
    if sqlite_path(address) is not None:
        return address
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return f"{address.partition('://')[0]}://***"
    user, query = match["user"], match["query"]
    login = "" if user is None else f"{user}{':***' if match['password'] else ''}@"
    shown_query = "" if query is None else f"?{'&'.join(map(_redact_parameter, query.split('&')))}"
    return f"{match['scheme']}://{login}{match['place']}{shown_query}"


def _redact_parameter(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    secret = "password" in name.lower() or "%" in name  # %70assword is password, too
    return f"{name}=***" if equals and value and secret else parameter


class SettingType(NamedTuple):
    """The type of a setting: its label, how a TOML value is checked, and how text is parsed."""

    label: str
    read: Callable[[str, Any], Any]
    parse_text: Callable[[str], Any] = str


def _invalid(name: str, rule: str, value: Any) -> InvalidSetting:
    return InvalidSetting(f"{name} must be {rule}; got {_settings.safe_repr(value)}.")


def _read_text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise _invalid(name, "text on one line", value)
    return value


def _read_url(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        raise _invalid(name, "like https://boards.example.org", value)
    return _read_text(name, value)


def _read_token(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise _invalid(name, "one word of plain characters", value)
    if not value or " " in value:
        raise _invalid(name, "one word of plain characters", value)
    return value


def _read_path(name: str, value: Any) -> Path:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str) or not value or "\0" in value:
        raise _invalid(name, "a path", value)
    try:
        return Path(value).expanduser()
    except RuntimeError:  # the user of ~user is unknown
        return Path(value)


def _read_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _invalid(name, "true or false", value)
    return value


def _parse_flag(text: str) -> bool | str:
    word = text.strip().lower()
    return word in _TRUE if word in _TRUE | _FALSE else text


def _read_list(name: str, value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
        raise _invalid(name, 'a list such as ["10.0.0.1", "10.0.0.2"]', value)
    return tuple(
        _read_text(name, item.strip()) for item in ",".join(items).split(",") if item.strip()
    )


def _read_rate(name: str, value: Any) -> tuple[int, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise _invalid(
            name, "two numbers, how many at once and the seconds until one more, [30, 10]", value
        )
    return (
        _settings.integer(f"The first of {name}", value[0], at_least=1),
        _settings.number(f"The second of {name}", value[1], above=0),
    )


def _parse_number(text: str) -> int | float | str:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            pass
    return text


def integer_type(at_least: int, at_most: int | None = None) -> SettingType:
    """Return the type of whole numbers within limits."""

    def read(name: str, value: Any) -> int:
        return _settings.integer(name, value, at_least=at_least, at_most=at_most)

    return SettingType("whole number", read, _parse_number)


def number_type(above: float) -> SettingType:
    """Return the type of numbers above a limit."""
    return SettingType(
        "number", lambda name, value: _settings.number(name, value, above=above), _parse_number
    )


TEXT = SettingType("text", _read_text)
URL = SettingType("text", _read_url)
TOKEN = SettingType("text", _read_token)
PATH = SettingType("path", _read_path)
FLAG = SettingType("true or false", _read_flag, _parse_flag)
LIST = SettingType("list", _read_list, lambda text: text.split(","))
RATE = SettingType(
    "two numbers", _read_rate, lambda text: [_parse_number(entry) for entry in text.split(",")]
)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting.

    Parameters
    ----------
    name
        Its key in the settings file, after the name of its table: ``serve.port``.
    kind
        Its type.
    default
        The default; None if it depends on something, as ``meaning`` explains.
    meaning
        What it means, in one sentence.
    option
        The command-line option; None if it has none.
    secret
        Whether the value is never shown.
    """

    name: str
    kind: SettingType = field(repr=False)
    default: Any
    meaning: str
    option: str | None = None
    secret: bool = False

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"LADDERBOARD_{self.name.replace('.', '_').upper()}"

    def parse(self, name: str, given: Any, *, base: Path | None = None) -> Any:
        """Return the checked value; ``name`` stands for it in the error message.

        Relative paths start from ``base``.
        """
        try:
            value = self.kind.read(name, given)
        except InvalidSetting:
            if not self.contains_secret(given):
                raise
            raise InvalidSetting(
                f"{name} must be {self.kind.label} on one line; the current value is hidden."
            ) from None
        if self.name == "database":
            check_database(name, value)
        if base is not None and self.kind is PATH:
            return base / value
        if base is not None and self.name == "database" and sqlite_path(value) is not None:
            absolute = os.fspath(base / Path(str(sqlite_path(value))).expanduser())
            return f"sqlite:///{absolute}" if value.startswith("sqlite:///") else absolute
        return value

    def parse_text(self, name: str, text: str) -> Any:
        """Return the value of a text from the environment or the command line."""
        return self.parse(name, self.kind.parse_text(text))

    def contains_secret(self, value: Any) -> bool:
        """Tell whether a value, or a part of it, must not be shown."""
        if self.name == "database":
            return not isinstance(value, str) or has_password(value)
        return self.secret

    def redacted(self, value: Any) -> Any:
        """Return a JSON-able value without secrets; None if the whole value is secret."""
        if self.name == "database":
            return without_password(value)
        if self.secret or value is None:
            return None
        if isinstance(value, tuple):
            return list(value)
        return os.fspath(value) if isinstance(value, os.PathLike) else value


_ROWS = (
    Setting(
        name="database",
        kind=TEXT,
        default="ladderboard.db",
        option="--database",
        meaning="The database: a file, or postgresql+psycopg://user@host/name.",
    ),
    Setting(
        name="key_file",
        kind=PATH,
        default=None,
        option="--key-file",
        meaning="The key file that encrypts labels and other secrets; created with a new database.",
    ),
    Setting(
        name="serve.host",
        kind=TEXT,
        default="127.0.0.1",
        option="--host",
        meaning="The address to listen on; 0.0.0.0 for all addresses of the machine.",
    ),
    Setting(
        name="serve.port",
        kind=integer_type(0, 65535),
        default=8000,
        option="--port",
        meaning="The port to listen on; 0 for any free port.",
    ),
    Setting(
        name="serve.workers",
        kind=integer_type(1, 256),
        default=1,
        option="--workers",
        meaning="How many processes serve; more than one needs PostgreSQL.",
    ),
    Setting(
        name="serve.url",
        kind=URL,
        default=None,
        option="--url",
        meaning="The public URL of the server, if it has one.",
    ),
    Setting(
        name="serve.proxy",
        kind=LIST,
        default=(),
        option="--proxy",
        meaning="Reverse proxies whose X-Forwarded-* headers are trusted.",
    ),
    Setting(
        name="serve.hosts",
        kind=LIST,
        default=(),
        meaning="Further host names of the server, besides the one in url.",
    ),
    Setting(
        name="serve.secure",
        kind=FLAG,
        default=None,
        meaning="Whether cookies are sent over TLS only; by default for https.",
    ),
    Setting(
        name="serve.parsers",
        kind=integer_type(1, 256),
        default=2,
        meaning="How many processes parse submissions, per serving process.",
    ),
    Setting(
        name="serve.threads",
        kind=integer_type(1, 1000),
        default=32,
        meaning="How many requests each process handles at once.",
    ),
    Setting(
        name="serve.spool",
        kind=PATH,
        default=None,
        meaning="A folder for large uploads; by default beside an SQLite file, "
        "otherwise in the system's temporary folder.",
    ),
    Setting(
        name="serve.body_seconds",
        kind=number_type(0),
        default=300.0,
        meaning="The time limit of an upload, in seconds.",
    ),
    Setting(
        name="serve.session_seconds",
        kind=integer_type(1),
        default=12 * 3600,
        meaning="The lifetime of a sign-in on the pages, in seconds.",
    ),
    Setting(
        name="serve.address_connections",
        kind=integer_type(1),
        default=100,
        meaning="Connections per client address and process; behind a trusted proxy, concurrent "
        "requests.",
    ),
    Setting(
        name="serve.failures",
        kind=RATE,
        default=(30, 10.0),
        meaning="Wrong tokens per address: how many at once, and the seconds until one more.",
    ),
    Setting(
        name="serve.registrations",
        kind=RATE,
        default=(10, 60.0),
        meaning="Registrations per address: how many at once, and the seconds until one more.",
    ),
    Setting(
        name="serve.invalid",
        kind=RATE,
        default=(30, 20.0),
        meaning="Invalid files per team: how many at once, and the seconds until one more.",
    ),
    Setting(
        name="serve.metrics_token",
        kind=TOKEN,
        default=None,
        secret=True,
        meaning="A token for /metrics, besides the organiser's; better kept in a file.",
    ),
    Setting(
        name="serve.metrics_token_file",
        kind=PATH,
        default=None,
        meaning="A file whose first line is the token for /metrics.",
    ),
    Setting(
        name="serve.log_client",
        kind=FLAG,
        default=False,
        meaning="Whether the log contains client addresses.",
    ),
)

SETTINGS: dict[str, Setting] = {entry.name: entry for entry in _ROWS}
"""All settings by name, in the order in which they are shown."""


class Variable(NamedTuple):
    """An environment variable; ``library`` is the one that reads it, if not Ladderboard."""

    name: str
    meaning: str
    secret: bool = False
    library: str | None = None


VARIABLES: tuple[Variable, ...] = (
    Variable(CONFIG, "The settings file, unless --config names one."),
    Variable("LADDERBOARD_URL", "The default server or guard of client commands."),
    Variable("LADDERBOARD_TOKEN", "The token for that server or guard.", secret=True),
    Variable("LADDERBOARD_PASSPHRASE", "The passphrase of a dump.", secret=True),
    Variable("XDG_CONFIG_HOME", "The folder where login stores tokens; ~/.config if not set."),
    Variable("XDG_STATE_HOME", "The folder for receipts; ~/.local/state if not set."),
    Variable("LISTEN_FDS", "How many sockets systemd passes to the server: one or none."),
    Variable("LISTEN_PID", "The process that they are passed to."),
    Variable("LISTEN_FDNAMES", "The names of the sockets; ignored."),
    Variable("TERM", "The kind of terminal; on a dumb one nothing is drawn."),
    Variable("NO_COLOR", "If set, no colours on a terminal.", library="rich"),
    Variable("COLUMNS", "The width of the terminal, if it does not report one.", library="rich"),
    Variable("TMPDIR", "The folder for temporary files.", library="Python"),
    Variable("PGPASSWORD", "The password for PostgreSQL.", secret=True, library="libpq"),
    Variable("PGPASSFILE", "A file with passwords; ~/.pgpass if not set.", library="libpq"),
    Variable(
        "HTTPS_PROXY",
        "The client's proxy for https servers.",
        secret=True,
        library="httpx",
    ),
    Variable("SSL_CERT_FILE", "The certificates that the client trusts.", library="httpx"),
    Variable("TZ", "The time zone; all output is in UTC nevertheless.", library="Python"),
    Variable("LANG", "The language, for the server's helper processes.", library="Python"),
    Variable("LC_ALL", "The same.", library="Python"),
    Variable("LC_CTYPE", "The same.", library="Python"),
    Variable(
        "LD_LIBRARY_PATH",
        "Library folders, for the server's helper processes.",
        library="the system",
    ),
)


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return a message for every unknown variable that starts with LADDERBOARD_.

    >>> unknown_variables({"LADDERBOARD_SERVE_PROT": "80", "PATH": "/bin"})
    ['LADDERBOARD_SERVE_PROT is not a known variable. Did you mean LADDERBOARD_SERVE_PORT?']
    """
    known = [entry.variable for entry in SETTINGS.values()]
    known += [entry.name for entry in VARIABLES if entry.name.startswith(_PREFIX)]
    messages = []
    for name in sorted(environment):
        if name.startswith(_PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            hint = (
                f"Did you mean {near[0]}?" if near else "ladderboard settings lists all variables."
            )
            messages.append(f"{name} is not a known variable. {hint}")
    return messages
