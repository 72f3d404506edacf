"""All settings of a server, each named once: as a field of ``Settings``.

The settings file, the environment, the options of ``ladderboard serve``, ``ladderboard settings``
and docs/reference/all-settings.md are made from these fields.
"""

from __future__ import annotations

import ipaddress
import os
import re
import time
from collections.abc import Callable  # noqa: TC003 - pydantic reads the annotations
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TextIO, Union, get_args, get_origin

from pydantic import AfterValidator, Field, PlainValidator, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from ladderboard import _settings
from ladderboard.client import parse_address
from ladderboard.errors import InvalidSetting
from ladderboard.server._rate_limits import Rate
from ladderboard.server._settings._providers import Providers, read_providers

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_settings import PydanticBaseSettingsSource

_SQLITE = "sqlite:///"
# Strict: a password with @ or / in it must not be taken for a host.
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z+]+)://(?:(?P<user>[^:@/?#]*)(?P<password>:[^@/?#]*)?@)?"
    r"(?P<place>[^@?#]*)(?:\?(?P<query>[^@#]*))?"
)
_TOP_LEVEL = ("database", "key_file", "sign_in")  # in the settings file above the table [serve]
_MAX_TOKEN_BYTES = 4096
_LIMITS = {"ge": "of at least", "le": "and at most", "gt": "above"}  # as pydantic names them
# What the documentation calls each type, and the rule in an error message.
_TYPES: dict[Any, tuple[str, str]] = {
    str: ("text", "text on one line"),
    int: ("whole number", "a whole number"),
    float: ("number", "a number"),
    bool: ("true or false", "true or false"),
    Path: ("path", "a path"),
    tuple: ("list", 'a list such as ["10.0.0.1", "10.0.0.2"]'),
    Providers: ("tables", "a table for each provider, such as [sign_in.github]"),
    Rate: (
        "two numbers",
        "two numbers, how many at once and the seconds, above 0, until one more, as in [30, 10]",
    ),
}


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
    if _settings.has_libpq_password(address):
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


def _check_line(value: str) -> str:
    if not value or not value.isprintable():
        raise ValueError
    return value


def _check_database(value: str) -> str:
    """Refuse a libpq connection string, which would become a file with a password in its name."""
    if _settings.has_libpq_password(value):
        raise ValueError
    return value


def _read_path(value: Any) -> Path:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or not text or "\0" in text:
        raise ValueError
    try:
        return Path(text).expanduser()
    except RuntimeError:  # the user of ~user is unknown
        return Path(text)


def _read_list(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple | set | frozenset):
        raise ValueError(value)  # noqa: TRY004 - pydantic collects no other error
    if not all(isinstance(item, str) and item for item in items):
        raise ValueError(value)
    return tuple(_check_line(item.strip()) for item in ",".join(items).split(",") if item.strip())


def _check_proxies(value: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a name, which would never match an address, and a network that is everybody."""
    for proxy in value:
        try:
            valid = ipaddress.ip_network(proxy).prefixlen > 0
        except ValueError:
            valid = False
        if not valid:
            raise ValueError(proxy)
    return value


def _read_rate(value: Any) -> Rate:
    if isinstance(value, str):
        text, _, seconds_text = value.partition(",")
        value = (int(text), float(seconds_text))
    if not isinstance(value, list | tuple):
        raise ValueError  # noqa: TRY004 - pydantic collects no other error
    burst, seconds = value
    return Rate(
        _settings.integer("burst", burst, at_least=1),
        _settings.number("seconds", seconds, above=0),
    )


_Line = Annotated[str, AfterValidator(_check_line)]
_Path = Annotated[Path, PlainValidator(_read_path)]
_List = Annotated[tuple[str, ...], PlainValidator(_read_list)]
_RateLimit = Annotated[Rate, PlainValidator(_read_rate)]


def _setting(
    default: Any,
    meaning: str,
    *,
    metavar: str | None = None,
    rule: str | None = None,
    secret: bool = False,
    **limits: Any,
) -> Any:
    """Return a field of ``Settings``.

    Parameters
    ----------
    default
        The default; None if it depends on something, as ``meaning`` explains.
    meaning
        What the setting means, in one sentence.
    metavar
        What the option of ``ladderboard serve`` calls its value; without it there is no option.
    rule
        What the value must be, for the error message, if the type does not say it.
    secret
        Whether the value is never shown.
    limits
        Limits that pydantic checks.
    """
    extra: Any = {"metavar": metavar, "rule": rule, "secret": secret}
    return Field(default, description=meaning, json_schema_extra=extra, **limits)


class Settings(BaseSettings):
    """Where and how boards are served.

    Each field is a setting; docs/reference/settings.md lists them. In Python only the arguments
    count: :func:`find_settings` reads the environment and the settings file.

    Parameters
    ----------
    log
        The stream of the log; standard error if None.
    timer
        Measures durations; for tests.
    """

    model_config = SettingsConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,  # it may be a secret
        arbitrary_types_allowed=True,
        enable_decoding=False,  # lists in the environment are not JSON
    )

    database: Annotated[_Line, AfterValidator(_check_database)] = _setting(
        "ladderboard.db",
        "The database: a file, or postgresql+psycopg://user@host/name.",
        metavar="URL",
        rule="a path, sqlite:///path or postgresql+psycopg://user@host/name",
        repr=False,  # it may hold a password
    )
    key_file: _Path | None = _setting(
        None,
        "The key file that encrypts labels and other secrets; created with a new database.",
        metavar="PATH",
    )
    sign_in: Annotated[Providers, PlainValidator(read_providers)] = _setting(
        Providers(),
        "The providers that people can sign in with; in the environment, the tables as JSON.",
        repr=False,  # it may hold secrets
    )
    host: _Line = _setting(
        "127.0.0.1",
        "The address to listen on; 0.0.0.0 for all addresses of the machine.",
        metavar="<str>",
    )
    port: int = _setting(
        8000, "The port to listen on; 0 for any free port.", metavar="<int>", ge=0, le=65535
    )
    workers: int = _setting(
        1,
        "How many processes serve; more than one needs PostgreSQL.",
        metavar="<int>",
        ge=1,
        le=256,
    )
    url: Annotated[str, AfterValidator(lambda url: parse_address(url).url)] | None = _setting(
        None,
        "The public URL of the server, if it has one.",
        metavar="URL",
        rule="like https://boards.example.org",
        pattern="^https?://",
    )
    proxy: Annotated[_List, AfterValidator(_check_proxies)] = _setting(
        (),
        "Reverse proxies whose X-Forwarded-* headers are trusted.",
        metavar="ADDRESS,...",
        rule='a list such as ["10.0.0.1", "10.0.0.2"], as an option 10.0.0.1,10.0.0.2, of '
        "addresses or networks like 10.0.0.0/24",
    )
    hosts: _List = _setting((), "Further host names of the server, besides the one in url.")
    secure: bool | None = _setting(
        None, "Whether cookies are sent over TLS only; by default for https."
    )
    parsers: int = _setting(
        2, "How many processes parse submissions, per serving process.", ge=1, le=256
    )
    threads: int = _setting(32, "How many requests each process handles at once.", ge=1, le=1000)
    spool: _Path | None = _setting(
        None,
        "A folder for large uploads; by default beside an SQLite file, otherwise in the system's "
        "temporary folder.",
    )
    body_seconds: float = _setting(
        300.0, "The time limit of an upload, in seconds.", gt=0, allow_inf_nan=False
    )
    session_seconds: int = _setting(
        12 * 3600, "The lifetime of a sign-in on the pages, in seconds.", ge=1
    )
    address_connections: int = _setting(
        100,
        "Connections per client address and process; behind a trusted proxy, concurrent requests.",
        ge=1,
    )
    failures: _RateLimit = _setting(
        Rate(30, 10.0),
        "Wrong tokens per address: how many at once, and the seconds until one more.",
    )
    registrations: _RateLimit = _setting(
        Rate(10, 60.0),
        "Registrations per address: how many at once, and the seconds until one more.",
    )
    invalid: _RateLimit = _setting(
        Rate(30, 20.0),
        "Invalid or checked files per team: how many at once, and the seconds until one more.",
    )
    metrics_token: str | None = _setting(
        None,
        "A token for /metrics, besides the organiser's; better kept in a file.",
        rule="one word of plain characters",
        secret=True,
        pattern="^[!-~]+$",
        repr=False,
    )
    metrics_token_file: _Path | None = _setting(
        None, "A file whose first line is the token for /metrics."
    )
    webhook_private: bool = _setting(
        False, "Whether webhooks may go to loopback and private addresses."
    )
    log_client: bool = _setting(False, "Whether the log contains client addresses.")

    log: Annotated[TextIO | None, PlainValidator(lambda log: log)] = None
    timer: Annotated[Callable[[], float], PlainValidator(lambda timer: timer)] = time.perf_counter

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _describe_error(error, lambda setting: setting.field) from error

    @classmethod
    def settings_customise_sources(
        cls, *_: Any, **sources: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the arguments as the only source: find_settings reads the others."""
        return (sources["init_settings"],)

    @cached_property
    def prefix(self) -> str:
        """The path of the public URL, which all links begin with."""
        return "" if self.url is None else parse_address(self.url).prefix

    @cached_property
    def known_hosts(self) -> frozenset[str]:
        """The host names of the server, besides IP addresses and ``localhost``."""
        public = () if self.url is None else (parse_address(self.url).host,)
        return frozenset(host.lower() for host in (*self.hosts, *public))

    @cached_property
    def secure_cookies(self) -> bool | None:
        """Whether cookies are sent over TLS only; None: if the request came over TLS."""
        https = self.url is not None and self.url.startswith("https:")
        return True if self.secure is None and https else self.secure

    def check_workers(self) -> None:
        """Raise if the number of workers does not fit the database or the system."""
        if self.workers > 1 and sqlite_path(self.database) is not None:
            raise InvalidSetting(
                "workers must be 1 on SQLite, which allows one writing process; for more, use "
                "PostgreSQL: --database postgresql+psycopg://..."
            )
        if self.workers > 1 and os.name != "posix":
            raise InvalidSetting(
                "workers must be 1 on Windows, where processes cannot share a port."
            )

    def with_metrics_token(self) -> Settings:
        """Return these settings with the token for ``/metrics`` read from its file."""
        if self.metrics_token_file is None:
            return self
        token = _read_token(self.metrics_token_file)
        return self.model_copy(update={"metrics_token": token, "metrics_token_file": None})


def _read_token(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            content = opened.read(_MAX_TOKEN_BYTES)
    except OSError as error:
        raise InvalidSetting(
            f"serve.metrics_token_file is {path}, which cannot be read: {error.strerror}."
        ) from None
    token = content.partition(b"\n")[0].decode("latin-1").strip()
    settings = check_settings({"metrics_token": token}, lambda _: f"The token in {path}")
    return str(settings.metrics_token)


@dataclass(frozen=True)
class Setting:
    """One setting, as its field in ``Settings`` describes it.

    Parameters
    ----------
    field
        The name of the field.
    name
        Its key in the settings file, after the name of its table: ``serve.port``.
    variable
        The environment variable.
    option, metavar
        The option of ``ladderboard serve`` and what it calls its value; None if it has none.
    type, kind
        Its type without None and without limits, and what the documentation calls that.
    rule
        What the value must be, for the error message.
    default
        The default; None if it depends on something.
    meaning
        What it means, in one sentence.
    secret
        Whether the value is never shown.
    """

    field: str
    name: str
    variable: str
    option: str | None
    metavar: str | None
    type: Any
    kind: str
    rule: str
    default: Any
    meaning: str
    secret: bool

    def contains_secret(self, value: Any) -> bool:
        """Tell whether a value, or a part of it, must not be shown."""
        if self.field == "database":
            return not isinstance(value, str) or has_password(value)
        if self.field == "sign_in":
            return not isinstance(value, Providers) or any(item.client_secret for item in value)
        return self.secret

    def redacted(self, value: Any) -> Any:
        """Return a JSON-able value without secrets; None if the whole value is secret."""
        if self.field == "database":
            return without_password(value)
        if self.secret or value is None:
            return None
        if isinstance(value, Providers):
            return [provider.name for provider in value]
        if isinstance(value, tuple):
            return list(value)
        return os.fspath(value) if isinstance(value, os.PathLike) else value


def _describe_field(field: str, info: FieldInfo) -> Setting:
    name = field if field in _TOP_LEVEL else f"serve.{field}"
    extra: Any = info.json_schema_extra
    kind, rule = _TYPES[_plain_type(info.annotation)]
    for limit in info.metadata:
        for attribute, word in _LIMITS.items():
            rule += f" {word} {getattr(limit, attribute)}" if hasattr(limit, attribute) else ""
    return Setting(
        field=field,
        name=name,
        variable=f"LADDERBOARD_{name.replace('.', '_').upper()}",
        option=extra["metavar"] and f"--{field.replace('_', '-')}",
        metavar=extra["metavar"],
        type=_plain_type(info.annotation),
        kind=kind,
        rule=extra["rule"] or rule,
        default=info.default,
        meaning=str(info.description),
        secret=extra["secret"],
    )


def _plain_type(annotation: Any) -> Any:
    """Return a type without None and without what pydantic checks.

    >>> _plain_type(tuple[str, ...]), _plain_type(Annotated[int, "at least 1"] | None)
    (<class 'tuple'>, <class 'int'>)
    """
    if get_origin(annotation) in {Union, UnionType}:
        annotation = next(part for part in get_args(annotation) if part is not NoneType)
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return get_origin(annotation) or annotation


_ROWS = [
    _describe_field(field, info)
    for field, info in Settings.model_fields.items()
    if info.description is not None  # log and timer can be given in Python only
]
SETTINGS: dict[str, Setting] = {setting.name: setting for setting in _ROWS}
"""All settings by name, in the order in which they are shown."""


def check_settings(values: dict[str, Any], label: Callable[[Setting], str]) -> Settings:
    """Return settings; in an error message ``label`` returns what stands for a setting."""
    try:
        return Settings(**values)
    except InvalidSetting as error:
        if isinstance(error.__cause__, ValidationError):
            raise _describe_error(error.__cause__, label) from None
        raise


def _describe_error(error: ValidationError, label: Callable[[Setting], str]) -> InvalidSetting:
    """Return the first error as a sentence that states the rule and, if not secret, the value."""
    first = error.errors(include_url=False)[0]
    field, value = str(first["loc"][0]), first["input"]
    setting = next((setting for setting in _ROWS if setting.field == field), None)
    if setting is None:
        return InvalidSetting(f"{field} is not a setting.")
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidSetting) and field in {"url", "sign_in"}:
        return InvalidSetting(f"{label(setting)}: {cause}")
    if cause is not None and field == "proxy":
        value = cause.args[0]
    shown = f"got {_settings.safe_repr(value)}"
    if setting.contains_secret(value):
        shown = "the current value is hidden"
    return InvalidSetting(f"{label(setting)} must be {setting.rule}; {shown}.")
