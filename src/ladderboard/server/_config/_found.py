"""What a server is set to, by who said so first.

The command line counts before the environment, that before a file, and that before the default.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.errors import InvalidSetting
from ladderboard.server._config._file import read_settings_file
from ladderboard.server._config._table import SETTINGS
from ladderboard.server._config._variables import CONFIG

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ladderboard.server._config._setting import Setting

__all__ = ["Found", "Value", "find_settings"]

_TOKEN, _TOKEN_FILE = "serve.metrics_token", "serve.metrics_token_file"
_LONGEST = 4096


@dataclass(frozen=True)
class Value:
    """What one setting is set to, and who said so.

    ``source`` is ``command line``, ``environment``, ``file`` or ``default``.
    """

    setting: Setting
    value: Any = field(repr=False)
    source: str

    @property
    def shown(self) -> Any:
        """The value as JSON may have it and anybody may see it; None where it is hidden."""
        return self.setting.shown(self.value)

    @property
    def hidden(self) -> bool:
        """Whether the value, or a part of it, is not shown."""
        return self.value is not None and self.setting.hides(self.value)


@dataclass(frozen=True)
class Found:
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
                held = opened.read(_LONGEST)
        except OSError as error:
            raise InvalidSetting(
                f"{_TOKEN_FILE} is {path}, which cannot be read: {error.strerror}."
            ) from None
        return str(SETTINGS[_TOKEN].take(place, held.partition(b"\n")[0].decode("latin-1").strip()))


def find_settings(
    config: Path | str | None = None,
    given: Mapping[str, Any] | None = None,
    *,
    only: Collection[str] = SETTINGS,
    environment: Mapping[str, str] | None = None,
) -> Found:
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
            values[name] = Value(setting, _typed(setting, given[name]), "command line")
        elif variables.get(setting.variable):
            text = variables[setting.variable]
            values[name] = Value(setting, setting.take_text(setting.variable, text), "environment")
        elif name in written:
            values[name] = Value(setting, written[name], "file")
        else:
            values[name] = Value(setting, setting.default, "default")
    if _TOKEN in values and _TOKEN_FILE in values:
        _choose_token(values)
    return Found(file, values)


def _typed(setting: Setting, given: Any) -> Any:
    place = setting.option or setting.name
    return setting.take_text(place, given) if isinstance(given, str) else setting.take(place, given)


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
