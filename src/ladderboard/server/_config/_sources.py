"""What a server is set to, by who said so first: the command line, the environment, a file.

The command line counts before the environment, that before a file, and that before the default.
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
    """Return what a file sets, by the settings' names, or refuse it.

    A file that anybody may write is refused: it says where labels are kept, and under which key. So
    is one with a secret in it that anybody may read. A group may do both, as with a service's files
    that belong to root.
    """
    try:
        with path.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            held = opened.read(_LONGEST_FILE + 1)
    except OSError as error:
        raise InvalidSetting(
            f"The settings file {path} cannot be read: {error.strerror}."
        ) from None
    if len(held) > _LONGEST_FILE:
        raise InvalidSetting(f"The settings file {path} is too large to be one.")
    others = os.name == "posix" and stat.S_ISREG(mode)
    if others and mode & 0o002:
        raise InvalidSetting(
            f"Anybody on this machine may write the settings file {path}. Type: chmod o-w {path}"
        )
    found = _flatten(path, _parse_toml(path, held))
    secrets = [name for name, value in found.items() if SETTINGS[name].contains_secret(value)]
    if others and secrets and mode & 0o004:
        raise InvalidSetting(
            f"{secrets[0]} in {path} is secret, and anybody on this machine may read it. "
            f"Type: chmod o-r {path}"
        )
    base = path.parent.absolute()
    return {
        name: SETTINGS[name].parse(f"{name} in {path}", value, base=base)
        for name, value in found.items()
    }


def _parse_toml(path: Path, held: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(held.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidSetting(f"The settings file {path} is not text in UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        # Where, but not what: the line may hold a secret.
        where = re.search(r"at line \d+, column \d+|at end of document", str(error))
        raise InvalidSetting(
            f"The settings file {path} is not TOML{f' {where[0]}' if where else ''}; text stands "
            'in quotes, as in host = "127.0.0.1".'
        ) from None
    except RecursionError:
        raise InvalidSetting(f"The settings file {path} is too deep to be one.") from None


def _flatten(path: Path, said: dict[str, Any]) -> dict[str, Any]:
    """Return values by the settings' names; refuse what is none."""
    found: dict[str, Any] = {}
    for key, value in said.items():
        if key in _TABLES:
            if not isinstance(value, dict):
                raise InvalidSetting(
                    f"{key} in {path} must be a table: a line [{key}], and its settings below."
                )
            found |= {f"{key}.{each}": inner for each, inner in value.items()}
        else:
            found[key] = value
    for name in found:
        if name not in SETTINGS:
            raise InvalidSetting(
                f"{_printable_name(name)} in {path} is no setting; {_suggest_setting(name)}"
            )
    return found


def _suggest_setting(name: str) -> str:
    """Return what somebody may have meant who wrote this name."""
    keys = {each.rpartition(".")[2]: each for each in SETTINGS}
    alone = name.rpartition(".")[2]
    if alone in keys:
        table = keys[alone].rpartition(".")[0]
        return f"{alone} stands {f'below [{table}]' if table else 'above all tables'}."
    near = difflib.get_close_matches(alone, keys, n=1)
    return f"is {keys[near[0]]} meant?" if near else "ladderboard settings lists all."


def _printable_name(name: str) -> str:
    return name if name.isprintable() and len(name) <= 80 else repr(name)[:80]


@dataclass(frozen=True)
class Value:
    """What one setting is set to, and who said so.

    ``source`` is ``command line``, ``environment``, ``file`` or ``default``.
    """

    setting: Setting
    value: Any = field(repr=False)
    source: str

    @property
    def redacted(self) -> Any:
        """The value as JSON may have it and anybody may see it; None where it is hidden."""
        return self.setting.redacted(self.value)

    @property
    def hidden(self) -> bool:
        """Whether the value, or a part of it, is not shown."""
        return self.value is not None and self.setting.contains_secret(self.value)


@dataclass(frozen=True)
class ResolvedSettings:
    """What was found: all settings, and the file that was read, if one was."""

    file: Path | None
    values: dict[str, Value]

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def metrics_token(self) -> str | None:
        """Return the token for ``/metrics``, if there is one, from its file if it has one."""
        path: Path | None = self[_TOKEN_FILE]
        if path is None:
            token: str | None = self[_TOKEN]
            return token
        place = f"The token in {path}"
        try:
            with path.open("rb") as opened:
                held = opened.read(_LONGEST_TOKEN)
        except OSError as error:
            raise InvalidSetting(
                f"{_TOKEN_FILE} is {path}, which cannot be read: {error.strerror}."
            ) from None
        return str(
            SETTINGS[_TOKEN].parse(place, held.partition(b"\n")[0].decode("latin-1").strip())
        )


def find_settings(
    config: Path | str | None = None,
    given: Mapping[str, Any] | None = None,
    *,
    only: Collection[str] = SETTINGS,
    environment: Mapping[str, str] | None = None,
) -> ResolvedSettings:
    """Return what a server is set to, or refuse what cannot be understood.

    Parameters
    ----------
    config
        The settings file; that which ``LADDERBOARD_CONFIG`` names if None, and none if it is not
        set.
    given
        What the command line says, by the settings' names; None is nothing.
    only
        The settings that are wanted; what the environment says of others is not looked at.
    environment
        Variables; those of this process if None. An empty one is as if it were not set.
    """
    variables = os.environ if environment is None else environment
    given = {} if given is None else given
    named = config or variables.get(CONFIG) or None
    file = None if named is None else Path(named)
    written = {} if file is None else read_settings_file(file)
    values = {}
    for name in only:
        setting = SETTINGS[name]
        if given.get(name) is not None:
            values[name] = Value(setting, _parse_option(setting, given[name]), "command line")
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


def _parse_option(setting: Setting, given: Any) -> Any:
    place = setting.option or setting.name
    return (
        setting.parse_text(place, given) if isinstance(given, str) else setting.parse(place, given)
    )


def _choose_token(values: dict[str, Value]) -> None:
    """Let the token or its file count, by who was named first; not both."""
    pair = [values[_TOKEN], values[_TOKEN_FILE]]
    if any(each.value is None for each in pair):
        return
    if pair[0].source == pair[1].source:
        raise InvalidSetting(
            f"{_TOKEN} and {_TOKEN_FILE} are both set in the {pair[0].source}; leave one out."
        )
    weaker = next(each for each in pair if each.source == "file")
    values[weaker.setting.name] = Value(weaker.setting, None, "default")
