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
_OURS = "LADDERBOARD_"


def check_database(place: str, address: str) -> None:
    """Refuse words of libpq's, which would be a file with a password in its name."""
    if has_libpq_password(address):
        raise InvalidSetting(
            f"{place} must be a path, sqlite:///path or postgresql+psycopg://user@host/name; what "
            "it is now is not shown."
        )


def sqlite_path(address: str) -> str | None:
    """Return the file that a database is; None where it is elsewhere."""
    if address.startswith(_SQLITE):
        return address.removeprefix(_SQLITE)
    return None if "://" in address else address


def has_password(address: str) -> bool:
    """Tell whether an address holds a password, or may hold one.

    >>> has_password("boards.db"), has_password("postgresql://me@there/boards")
    (False, False)
    >>> has_password("postgresql://me:secret@there/boards")
    True
    """
    return without_password(address) != address


def without_password(address: str) -> str:
    """Return an address as anybody may see it.

    >>> without_password("postgresql+psycopg://me:secret@there/boards")
    'postgresql+psycopg://me:***@there/boards'
    >>> without_password("postgresql://me:se/cr@et@there/boards")
    'postgresql://***'
    """
    if has_libpq_password(address):
        return "***"
    if sqlite_path(address) is not None:
        return address
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return f"{address.partition('://')[0]}://***"
    user, query = found["user"], found["query"]
    who = "" if user is None else f"{user}{':***' if found['password'] else ''}@"
    asked = "" if query is None else f"?{'&'.join(map(_safe, query.split('&')))}"
    return f"{found['scheme']}://{who}{found['place']}{asked}"


def _safe(part: str) -> str:
    name, equals, value = part.partition("=")
    secret = "password" in name.lower() or "%" in name  # %70assword is password, too
    return f"{name}=***" if equals and value and secret else part


class SettingType(NamedTuple):
    """What a setting may be: in a word, as a file has it, and as text."""

    label: str
    read: Callable[[str, Any], Any]
    parse_text: Callable[[str], Any] = str


def _invalid(name: str, rule: str, given: Any) -> InvalidSetting:
    return InvalidSetting(f"{name} must be {rule}; got {_settings.safe_repr(given)}.")


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given or not given.isprintable():
        raise _invalid(name, "text on one line", given)
    return given


def _url(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given.startswith(("http://", "https://")):
        raise _invalid(name, "like https://boards.example.org", given)
    return _text(name, given)


def _token(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given.isascii() or not given.isprintable():
        raise _invalid(name, "one word of plain characters", given)
    if not given or " " in given:
        raise _invalid(name, "one word of plain characters", given)
    return given


def _path(name: str, given: Any) -> Path:
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if not isinstance(given, str) or not given or "\0" in given:
        raise _invalid(name, "a path", given)
    try:
        return Path(given).expanduser()
    except RuntimeError:  # nobody knows whose home is meant
        return Path(given)


def _flag(name: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise _invalid(name, "true or false", given)
    return given


def _typed_flag(text: str) -> bool | str:
    word = text.strip().lower()
    return word in _TRUE if word in _TRUE | _FALSE else text


def _list(name: str, given: Any) -> tuple[str, ...]:
    each = [given] if isinstance(given, str) else given
    if not isinstance(each, list) or not all(isinstance(one, str) and one for one in each):
        raise _invalid(name, 'a list such as ["10.0.0.1", "10.0.0.2"]', given)
    return tuple(_text(name, one.strip()) for one in ",".join(each).split(",") if one.strip())


def _rate(name: str, given: Any) -> tuple[int, float]:
    if not isinstance(given, list) or len(given) != 2:
        raise _invalid(
            name, "two numbers, how many at once and the seconds until one more, [30, 10]", given
        )
    return (
        _settings.integer(f"The first of {name}", given[0], at_least=1),
        _settings.number(f"The second of {name}", given[1], above=0),
    )


def _typed_number(text: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return text


def integer_type(at_least: int, at_most: int | None = None) -> SettingType:
    """Return the kind of whole numbers within limits."""

    def read(name: str, given: Any) -> int:
        return _settings.integer(name, given, at_least=at_least, at_most=at_most)

    return SettingType("whole number", read, _typed_number)


def number_type(above: float) -> SettingType:
    """Return the kind of numbers above a limit."""
    return SettingType(
        "number", lambda name, given: _settings.number(name, given, above=above), _typed_number
    )


TEXT = SettingType("text", _text)
URL = SettingType("text", _url)
TOKEN = SettingType("text", _token)
PATH = SettingType("path", _path)
FLAG = SettingType("true or false", _flag, _typed_flag)
LIST = SettingType("list", _list, lambda text: text.split(","))
RATE = SettingType(
    "two numbers", _rate, lambda text: [_typed_number(each) for each in text.split(",")]
)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One row of the table.

    Parameters
    ----------
    name
        Its key in a file, after the name of its table: ``serve.port``.
    kind
        What it may be.
    default
        What it is if nobody says; None where that depends, which ``meaning`` tells.
    meaning
        One sentence.
    option
        What to type for it on the command line; None where there is none.
    secret
        Whether it is shown to nobody.
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

    def parse(self, place: str, given: Any, *, base: Path | None = None) -> Any:
        """Return the value that was given at some place, or refuse it by that place.

        Paths that are not whole start from ``base``.
        """
        try:
            value = self.kind.read(place, given)
        except InvalidSetting:
            if not self.contains_secret(given):
                raise
            raise InvalidSetting(
                f"{place} must be {self.kind.label} on one line; what it is now is not shown."
            ) from None
        if self.name == "database":
            check_database(place, value)
        if base is not None and self.kind is PATH:
            return base / value
        if base is not None and self.name == "database" and sqlite_path(value) is not None:
            absolute = os.fspath(base / Path(str(sqlite_path(value))).expanduser())
            return f"sqlite:///{absolute}" if value.startswith("sqlite:///") else absolute
        return value

    def parse_text(self, place: str, text: str) -> Any:
        """Return the value that some text is, from the environment or the command line."""
        return self.parse(place, self.kind.parse_text(text))

    def contains_secret(self, value: Any) -> bool:
        """Tell whether a value, or a part of it, must not be shown."""
        if self.name == "database":
            return not isinstance(value, str) or has_password(value)
        return self.secret

    def redacted(self, value: Any) -> Any:
        """Return a value as JSON may have it and anybody may see it; None where it is hidden."""
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
        meaning="Encrypts labels and everything else that is secret; made with a new database.",
    ),
    Setting(
        name="serve.host",
        kind=TEXT,
        default="127.0.0.1",
        option="--host",
        meaning="The address to listen at; 0.0.0.0 for all of the machine's.",
    ),
    Setting(
        name="serve.port",
        kind=integer_type(0, 65535),
        default=8000,
        option="--port",
        meaning="The port to listen on; 0 for any that is free.",
    ),
    Setting(
        name="serve.workers",
        kind=integer_type(1, 256),
        default=1,
        option="--workers",
        meaning="How many processes answer; several need PostgreSQL.",
    ),
    Setting(
        name="serve.url",
        kind=URL,
        default=None,
        option="--url",
        meaning="What people type to come here, where a name leads to the server.",
    ),
    Setting(
        name="serve.proxy",
        kind=LIST,
        default=(),
        option="--proxy",
        meaning="Addresses of reverse proxies that are believed who asks, and whether by TLS.",
    ),
    Setting(
        name="serve.hosts",
        kind=LIST,
        default=(),
        meaning="Further names by which the server is known, besides that in url.",
    ),
    Setting(
        name="serve.secure",
        kind=FLAG,
        default=None,
        meaning="Whether cookies go over TLS only; where nobody says, if url or the request is "
        "https.",
    ),
    Setting(
        name="serve.parsers",
        kind=integer_type(1, 256),
        default=2,
        meaning="How many processes read submissions, for each that answers.",
    ),
    Setting(
        name="serve.threads",
        kind=integer_type(1, 1000),
        default=32,
        meaning="How many requests each process works on at once.",
    ),
    Setting(
        name="serve.spool",
        kind=PATH,
        default=None,
        meaning="A folder for submissions too large for memory, while they come in; where nobody "
        "says, beside an SQLite file, else in the system's temporary folder.",
    ),
    Setting(
        name="serve.trials",
        kind=PATH,
        default=None,
        meaning="A folder for what attackers that an organiser let play have found; where nobody "
        "says, a temporary one.",
    ),
    Setting(
        name="serve.body_seconds",
        kind=number_type(0),
        default=300.0,
        meaning="How long a submission may take to come in, in seconds.",
    ),
    Setting(
        name="serve.session_seconds",
        kind=integer_type(1),
        default=12 * 3600,
        meaning="How long somebody stays signed in on the pages, in seconds.",
    ),
    Setting(
        name="serve.trial_seconds",
        kind=number_type(0),
        default=900.0,
        meaning="How long attackers that an organiser lets play may take, in seconds.",
    ),
    Setting(
        name="serve.address_connections",
        kind=integer_type(1),
        default=100,
        meaning="How many connections one client address may have at each process; behind a "
        "trusted proxy, how many requests under way.",
    ),
    Setting(
        name="serve.failures",
        kind=RATE,
        default=(30, 10.0),
        meaning="Wrong tokens from one address: how many at once, and the seconds until one more.",
    ),
    Setting(
        name="serve.registrations",
        kind=RATE,
        default=(10, 60.0),
        meaning="Registrations from one address: how many at once, and the seconds until one more.",
    ),
    Setting(
        name="serve.invalid",
        kind=RATE,
        default=(30, 20.0),
        meaning="Invalid files of one team: how many at once, and the seconds until one more.",
    ),
    Setting(
        name="serve.metrics_token",
        kind=TOKEN,
        default=None,
        secret=True,
        meaning="Opens /metrics, besides the organiser's token; better kept in a file of its own.",
    ),
    Setting(
        name="serve.metrics_token_file",
        kind=PATH,
        default=None,
        meaning="A file whose first line is that token.",
    ),
    Setting(
        name="serve.log_client",
        kind=FLAG,
        default=False,
        meaning="Whether the log names the addresses that requests come from.",
    ),
)

SETTINGS: dict[str, Setting] = {each.name: each for each in _ROWS}
"""All settings by name, in the order in which they are shown."""


class Variable(NamedTuple):
    """A variable: what it means, whether it is secret, and which library reads it if not we."""

    name: str
    meaning: str
    secret: bool = False
    library: str | None = None


VARIABLES: tuple[Variable, ...] = (
    Variable(CONFIG, "The settings file, where --config names none."),
    Variable("LADDERBOARD_URL", "The server, or the guard, that is asked where none is named."),
    Variable("LADDERBOARD_TOKEN", "The token to ask it with.", secret=True),
    Variable("LADDERBOARD_PASSPHRASE", "The passphrase of a dump.", secret=True),
    Variable("XDG_CONFIG_HOME", "The folder for tokens that login keeps; ~/.config if not set."),
    Variable("XDG_STATE_HOME", "The folder for receipts; ~/.local/state if not set."),
    Variable("LISTEN_FDS", "How many sockets systemd gives the server: one, or none."),
    Variable("LISTEN_PID", "Which process it gives them to."),
    Variable("LISTEN_FDNAMES", "How it calls them; not looked at."),
    Variable("TERM", "What a terminal can do: on one that is dumb nothing is drawn."),
    Variable("NO_COLOR", "If set, no colours on a terminal.", library="rich"),
    Variable("COLUMNS", "How wide a terminal is, where it does not say.", library="rich"),
    Variable("TMPDIR", "The folder for temporary files.", library="Python"),
    Variable("PGPASSWORD", "The password for PostgreSQL.", secret=True, library="libpq"),
    Variable("PGPASSFILE", "A file with passwords; ~/.pgpass if not set.", library="libpq"),
    Variable(
        "HTTPS_PROXY",
        "A proxy that those who take part ask an https server by.",
        secret=True,
        library="httpx",
    ),
    Variable("SSL_CERT_FILE", "Certificates that they trust.", library="httpx"),
    Variable("TZ", "The time zone; what is told is in UTC all the same.", library="Python"),
    Variable("LANG", "The language, for processes that help the server.", library="Python"),
    Variable("LC_ALL", "The same.", library="Python"),
    Variable("LC_CTYPE", "The same.", library="Python"),
    Variable("LD_LIBRARY_PATH", "Where libraries are, for the same.", library="the system"),
)


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return a sentence for every variable that looks like one of ours and is none.

    >>> unknown_variables({"LADDERBOARD_SERVE_PROT": "80", "PATH": "/bin"})
    ['LADDERBOARD_SERVE_PROT is set and means nothing; is LADDERBOARD_SERVE_PORT meant?']
    """
    known = [each.variable for each in SETTINGS.values()]
    known += [each.name for each in VARIABLES if each.name.startswith(_OURS)]
    said = []
    for name in sorted(environment):
        if name.startswith(_OURS) and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            meant = f"is {near[0]} meant?" if near else "ladderboard settings lists all."
            said.append(f"{name} is set and means nothing; {meant}")
    return said
