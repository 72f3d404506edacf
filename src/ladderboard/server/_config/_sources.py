"""The values of the settings: from the command line, the environment, a file or the defaults.

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
from typing import TYPE_CHECKING, Any

from ladderboard.errors import InvalidSetting
from ladderboard.server._config._definitions import CONFIG, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ladderboard.server._config._definitions import Setting

_LONGEST_FILE = 1 << 20
_TABLES = {name.partition(".")[0] for name in SETTINGS if "." in name}
_TOKEN, _TOKEN_FILE = "serve.metrics_token", "serve.metrics_token_file"
_LONGEST_TOKEN = 4096


def read_settings_file(path: Path) -> dict[str, Any]:
    """Return the values in a settings file by name, or refuse the file.

    A world-writable file is refused, since it names the database and the key file. So is a
    world-readable file with a secret. Its group may read and write it, as is usual for the files of
    a service that belong to root.
    """
    try:
        with path.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            content = opened.read(_LONGEST_FILE + 1)
    except OSError as error:
        raise InvalidSetting(
            f"The settings file {path} cannot be read: {error.strerror}."
        ) from None
    if len(content) > _LONGEST_FILE:
        raise InvalidSetting(f"The settings file {path} is larger than 1 MiB.")
    is_posix_file = os.name == "posix" and stat.S_ISREG(mode)
    if is_posix_file and mode & 0o002:
        raise InvalidSetting(
            f"Anybody on this machine may write the settings file {path}. Type: chmod o-w {path}"
        )
    values = _flatten(path, _parse_toml(path, content))
    secrets = [name for name, value in values.items() if SETTINGS[name].contains_secret(value)]
    if is_posix_file and secrets and mode & 0o004:
        raise InvalidSetting(
            f"{secrets[0]} in {path} is secret, and anybody on this machine may read it. "
            f"Type: chmod o-r {path}"
        )
    base = path.parent.absolute()
    return {
        name: SETTINGS[name].parse(f"{name} in {path}", value, base=base)
        for name, value in values.items()
    }


def _parse_toml(path: Path, content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidSetting(f"The settings file {path} is not text in UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        # The position only: the line may hold a secret.
        where = re.search(r"at line \d+, column \d+|at end of document", str(error))
        raise InvalidSetting(
            f"The settings file {path} is not TOML{f' {where[0]}' if where else ''}; text stands "
            'in quotes, as in host = "127.0.0.1".'
        ) from None
    except RecursionError:
        raise InvalidSetting(f"The settings file {path} is nested too deeply.") from None


def _flatten(path: Path, tables: dict[str, Any]) -> dict[str, Any]:
    """Return the values by setting name; refuse unknown names."""
    values: dict[str, Any] = {}
    for key, value in tables.items():
        if key in _TABLES:
            if not isinstance(value, dict):
                raise InvalidSetting(
                    f"{key} in {path} must be a table: a line [{key}] with its settings below."
                )
            values |= {f"{key}.{key_in_table}": inner for key_in_table, inner in value.items()}
        else:
            values[key] = value
    for name in values:
        if name not in SETTINGS:
            raise InvalidSetting(
                f"{_printable_name(name)} in {path} is not a setting. {_suggest_setting(name)}"
            )
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


def _printable_name(name: str) -> str:
    return name if name.isprintable() and len(name) <= 80 else repr(name)[:80]


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
    """All settings with their values, and the file that was read, if any."""

    file: Path | None
    values: dict[str, Value]

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def metrics_token(self) -> str | None:
        """Return the token for ``/metrics``, if any, from its file if one is set."""
        path: Path | None = self[_TOKEN_FILE]
        if path is None:
            token: str | None = self[_TOKEN]
            return token
        name = f"The token in {path}"
        try:
            with path.open("rb") as opened:
                content = opened.read(_LONGEST_TOKEN)
        except OSError as error:
            raise InvalidSetting(
                f"{_TOKEN_FILE} is {path}, which cannot be read: {error.strerror}."
            ) from None
        return str(
            SETTINGS[_TOKEN].parse(name, content.partition(b"\n")[0].decode("latin-1").strip())
        )


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
    overrides = {} if overrides is None else overrides
    named = config or variables.get(CONFIG) or None
    file = None if named is None else Path(named)
    written = {} if file is None else read_settings_file(file)
    values = {}
    for name in only:
        setting = SETTINGS[name]
        if overrides.get(name) is not None:
            values[name] = Value(setting, _parse_option(setting, overrides[name]), "command line")
        elif variables.get(setting.variable):
            text = variables[setting.variable]
            values[name] = Value(setting, setting.parse_text(setting.variable, text), "environment")
        elif name in written:
            values[name] = Value(setting, written[name], "file")
        else:
            values[name] = Value(setting, setting.default, "default")
    if _TOKEN in values and _TOKEN_FILE in values:
        _choose_token(values)
    return ResolvedSettings(file, values)


def _parse_option(setting: Setting, value: Any) -> Any:
    name = setting.option or setting.name
    return setting.parse_text(name, value) if isinstance(value, str) else setting.parse(name, value)


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
