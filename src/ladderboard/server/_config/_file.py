"""The settings file: TOML that says nothing but settings."""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from typing import TYPE_CHECKING, Any

from ladderboard.errors import InvalidSetting
from ladderboard.server._config._table import SETTINGS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_settings_file"]

_LONGEST = 1 << 20
_TABLES = {name.partition(".")[0] for name in SETTINGS if "." in name}


def read_settings_file(path: Path) -> dict[str, Any]:
    """Return what a file sets, by the settings' names, or refuse it.

    A file that anybody may write is refused: it says where labels are kept, and under which key. So
    is one with a secret in it that anybody may read. A group may do both, as with a service's files
    that belong to root.
    """
    try:
        with path.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            held = opened.read(_LONGEST + 1)
    except OSError as error:
        raise InvalidSetting(
            f"The settings file {path} cannot be read: {error.strerror}."
        ) from None
    if len(held) > _LONGEST:
        raise InvalidSetting(f"The settings file {path} is too large to be one.")
    others = os.name == "posix" and stat.S_ISREG(mode)
    if others and mode & 0o002:
        raise InvalidSetting(
            f"Anybody on this machine may write the settings file {path}. Type: chmod o-w {path}"
        )
    found = _flat(path, _parsed(path, held))
    secrets = [name for name, value in found.items() if SETTINGS[name].hides(value)]
    if others and secrets and mode & 0o004:
        raise InvalidSetting(
            f"{secrets[0]} in {path} is secret, and anybody on this machine may read it. "
            f"Type: chmod o-r {path}"
        )
    base = path.parent.absolute()
    return {
        name: SETTINGS[name].take(f"{name} in {path}", value, base=base)
        for name, value in found.items()
    }


def _parsed(path: Path, held: bytes) -> dict[str, Any]:
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


def _flat(path: Path, said: dict[str, Any]) -> dict[str, Any]:
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
            raise InvalidSetting(f"{_shown(name)} in {path} is no setting; {_meant(name)}")
    return found


def _meant(name: str) -> str:
    """Return what somebody may have meant who wrote this name."""
    keys = {each.rpartition(".")[2]: each for each in SETTINGS}
    alone = name.rpartition(".")[2]
    if alone in keys:
        table = keys[alone].rpartition(".")[0]
        return f"{alone} stands {f'below [{table}]' if table else 'above all tables'}."
    near = difflib.get_close_matches(alone, keys, n=1)
    return f"is {keys[near[0]]} meant?" if near else "ladderboard settings lists all."


def _shown(name: str) -> str:
    return name if name.isprintable() and len(name) <= 80 else repr(name)[:80]
