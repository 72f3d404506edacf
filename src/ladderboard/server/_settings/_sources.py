"""The values of the settings, and where each comes from.

The command line overrides the environment, which overrides the file, which overrides the default.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_settings import EnvSettingsSource

from ladderboard._atomic_file import absolute_path
from ladderboard.errors import InvalidSetting
from ladderboard.server._settings._model import (
    SETTINGS,
    Setting,
    Settings,
    check_settings,
    sqlite_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pydantic.fields import FieldInfo

CONFIG = "LADDERBOARD_CONFIG"
_PREFIX = "LADDERBOARD_"
_MAX_FILE_BYTES = 1 << 20
_TABLE = "serve"
_TOKEN, _TOKEN_FILE = "serve.metrics_token", "serve.metrics_token_file"


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
    known = [setting.variable for setting in SETTINGS.values()]
    known += [variable.name for variable in VARIABLES if variable.name.startswith(_PREFIX)]
    messages = []
    for name in sorted(environment):
        if name.startswith(_PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            hint = (
                f"Did you mean {near[0]}?" if near else "ladderboard settings lists all variables."
            )
            messages.append(f"{name} is not a known variable. {hint}")
    return messages


def format_value(value: Any) -> str:
    """Return a value as written in the settings file, without quotes; nothing for None.

    >>> format_value([30, 10.0]), format_value(False), format_value(None)
    ('30, 10', 'false', '')
    """
    if isinstance(value, list):
        return ", ".join(map(format_value, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


@dataclass(frozen=True)
class Value:
    """The value of one setting and its source.

    ``source`` is ``command line``, ``environment``, ``file`` or ``default``.
    """

    setting: Setting
    value: Any = field(repr=False)
    source: str

    @property
    def redacted(self) -> Any:
        """The value, JSON-able and without secrets; None if all of it is secret."""
        return self.setting.redacted(self.value)

    @property
    def hidden(self) -> bool:
        """Whether the value, or a part of it, is secret."""
        return self.value is not None and self.setting.contains_secret(self.value)


@dataclass(frozen=True)
class ResolvedSettings:
    """Settings with the source of each, and the file that was read, if any."""

    file: Path | None
    values: dict[str, Value]

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    @property
    def settings(self) -> Settings:
        """The values alone."""
        return Settings(**{value.setting.field: value.value for value in self.values.values()})


class _TextSource(EnvSettingsSource):
    """Values by setting name; texts among them are converted to the types of their settings."""

    def __init__(self, texts: Mapping[str, Any]) -> None:
        super().__init__(Settings)
        self._texts = {SETTINGS[name].field: text for name, text in texts.items()}

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the text of a setting, if there is one."""
        return self._texts.get(field_name), field_name, False


def find_settings(
    config: Path | str | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    only: Collection[str] = SETTINGS,
    environment: Mapping[str, str] | None = None,
) -> ResolvedSettings:
    """Return the settings of a server; refuse invalid ones.

    Parameters
    ----------
    config
        The settings file; if None, the one that ``LADDERBOARD_CONFIG`` names, if it is set.
    overrides
        Values from the command line by setting name; None counts as not given.
    only
        The settings that are returned; variables of other settings are not read.
    environment
        The environment; that of this process if None. An empty variable counts as not set.
    """
    variables = os.environ if environment is None else environment
    named = config or variables.get(CONFIG) or None
    file = None if named is None else Path(named)
    written = {} if file is None else _read_file(file)
    options = {name: value for name, value in (overrides or {}).items() if value is not None}
    texts = {name: variables.get(SETTINGS[name].variable) or None for name in only}
    sources = {
        "command line": _check(_TextSource(options)(), lambda setting: setting.option or ""),
        "environment": _check(_TextSource(texts)(), lambda setting: setting.variable),
        "file": _check(written, lambda setting: f"{setting.name} in {file}"),
        "default": {setting.field: setting.default for setting in SETTINGS.values()},
    }
    values = {}
    for name in only:
        setting = SETTINGS[name]
        source = next(source for source, given in sources.items() if setting.field in given)
        values[name] = Value(setting, sources[source][setting.field], source)
    if _TOKEN in values and _TOKEN_FILE in values:
        _choose_token(values)
    return ResolvedSettings(file, values)


def _check(given: dict[str, Any], label: Callable[[Setting], str]) -> dict[str, Any]:
    """Return the values of one source as Settings reads them."""
    settings = check_settings(given, label)
    return {field: getattr(settings, field) for field in given}


def _choose_token(values: dict[str, Value]) -> None:
    """Drop the token or its file, whichever has the weaker source; refuse both from one source."""
    pair = [values[_TOKEN], values[_TOKEN_FILE]]
    if any(value.value is None for value in pair):
        return
    if pair[0].source == pair[1].source:
        raise InvalidSetting(
            f"{_TOKEN} and {_TOKEN_FILE} are both set in the {pair[0].source}; remove one."
        )
    weaker = next(value for value in pair if value.source == "file")
    values[weaker.setting.name] = Value(weaker.setting, None, "default")


def _read_file(path: Path) -> dict[str, Any]:
    """Return the values in a settings file by field, or refuse the file.

    A world-writable file is refused, since it names the database and the key file. So is a
    world-readable file with a secret. Its group may read and write it, as is usual for the files of
    a service that belong to root.
    """
    try:
        with path.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            content = opened.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidSetting(
            f"The settings file {path} cannot be read: {error.strerror}."
        ) from None
    if len(content) > _MAX_FILE_BYTES:
        raise InvalidSetting(f"The settings file {path} is larger than 1 MiB.")
    is_posix_file = os.name == "posix" and stat.S_ISREG(mode)
    if is_posix_file and mode & 0o002:
        raise InvalidSetting(
            f"Every user of this machine can write to the settings file {path}. "
            f"Run: chmod o-w {path}"
        )
    values = _flatten(path, _parse_toml(path, content))
    secrets = [name for name, value in values.items() if _contains_secret(name, value)]
    if is_posix_file and secrets and mode & 0o004:
        raise InvalidSetting(
            f"{secrets[0]} in {path} is secret, and every user of this machine can read it. "
            f"Run: chmod o-r {path}"
        )
    base = path.parent.absolute()
    return {
        SETTINGS[name].field: _with_base(SETTINGS[name], value, base)
        for name, value in values.items()
    }


def _contains_secret(name: str, value: Any) -> bool:
    """Tell whether a value in the settings file must not be read by everybody."""
    if name == "sign_in" and isinstance(value, dict):
        return any("client_secret" in table for table in value.values() if isinstance(table, dict))
    return SETTINGS[name].contains_secret(value)


def _with_base(setting: Setting, value: Any, base: Path) -> Any:
    """Return a value in which a relative path begins at the folder of the settings file."""
    if setting.name == "sign_in" and isinstance(value, dict):
        return {
            name: {
                key: _path_from(base, text)
                if key == "client_secret_file" and isinstance(text, str)
                else text
                for key, text in table.items()
            }
            if isinstance(table, dict)
            else table
            for name, table in value.items()
        }
    path = sqlite_path(value) if setting.name == "database" and isinstance(value, str) else value
    is_path = setting.type is Path or setting.name == "database"
    if not is_path or not isinstance(path, str) or not path:
        return value
    return value.removesuffix(path) + _path_from(base, path)


def _path_from(base: Path, text: str) -> str:
    return str(absolute_path(base / os.path.expanduser(text)))  # noqa: PTH111 - keeps unknown ~user


def _parse_toml(path: Path, content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidSetting(f"The settings file {path} is not text in UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        # The position only: the line may hold a secret.
        where = re.search(r"at line \d+, column \d+|at end of document", str(error))
        raise InvalidSetting(
            f"The settings file {path} is not TOML{f' {where[0]}' if where else ''}; put text "
            'in quotes, as in host = "127.0.0.1".'
        ) from None
    except RecursionError:
        raise InvalidSetting(f"The settings file {path} is nested too deeply.") from None


def _flatten(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Return the values by setting name; refuse unknown names."""
    table = content.pop(_TABLE, {})
    if not isinstance(table, dict):
        raise InvalidSetting(
            f"{_TABLE} in {path} must be a table: a line [{_TABLE}] with its settings below."
        )
    values = content | {f"{_TABLE}.{key}": value for key, value in table.items()}
    for name in values:
        if name not in SETTINGS:
            shown = name if name.isprintable() and len(name) <= 80 else repr(name)[:80]
            raise InvalidSetting(f"{shown} in {path} is not a setting. {_suggest_setting(name)}")
    return values


def _suggest_setting(name: str) -> str:
    """Return a hint for an unknown setting."""
    keys = {setting.rpartition(".")[2]: setting for setting in SETTINGS}
    key = name.rpartition(".")[2]
    if key in keys:
        table = keys[key].rpartition(".")[0]
        return f"Put {key} {f'under [{table}]' if table else 'above the first table'}."
    near = difflib.get_close_matches(key, keys, n=1)
    return f"Did you mean {keys[near[0]]}?" if near else "ladderboard settings lists all."
