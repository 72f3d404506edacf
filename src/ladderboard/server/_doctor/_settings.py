"""The settings: whether they can be understood, and whether others could change them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ladderboard.errors import InvalidSetting
from ladderboard.server._config import find_settings, strangers
from ladderboard.server._config._address import file_of
from ladderboard.server._doctor._files import others
from ladderboard.server._doctor._finding import note, ok, problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ladderboard.server._config import Found
    from ladderboard.server._doctor._finding import Finding

__all__ = ["check_settings"]

_ABOUT = "settings"


def check_settings(
    config: Path | None, given: Mapping[str, Any]
) -> tuple[list[Finding], Found | None]:
    """Read the settings; None where they cannot be understood."""
    said = [note(_ABOUT, each) for each in strangers(os.environ)]
    try:
        found = find_settings(config, given)
        found.metrics_token()
    except InvalidSetting as error:
        do = "Correct that; ladderboard settings tells what there is to set."
        # Whoever names a database wants it looked at, whatever the rest is.
        rest = find_settings(None, given, environment={}) if given.get("database") else None
        return [problem(_ABOUT, str(error), do), *said], rest
    said = [*_together(found), *_readable(found), *said]
    if found.file is None:
        alone = "There is no settings file; the environment and defaults count."
        return [ok(_ABOUT, alone), *said], found
    return [ok(_ABOUT, f"{found.file} can be read."), *_changeable(found.file), *said], found


def _together(found: Found) -> list[Finding]:
    """Look at what each may be alone, but not with the other."""
    if found["serve.workers"] == 1 or file_of(found["database"]) is None:
        return []
    said = f"serve.workers is {found['serve.workers']}, and one process alone serves from SQLite."
    return [problem(_ABOUT, said, "Set it to 1, or serve from PostgreSQL.")]


def _readable(found: Found) -> list[Finding]:
    token: Path | None = found["serve.metrics_token_file"]
    if token is None or others(token) != "anybody":
        return []
    said = f"Anybody on this machine may read the token in {token}."
    return [note(_ABOUT, said, f"If that is not meant: chmod o-r {token}")]


def _changeable(file: Path) -> list[Finding]:
    """Look who else than us may change a file; that anybody may was refused."""
    said, owner = [], file.stat().st_uid
    if hasattr(os, "geteuid") and owner not in {0, os.geteuid()}:
        who = f"{file} belongs to another user, number {owner}, who may change it."
        said.append(note(_ABOUT, who, f"If that is not meant: chown root {file}"))
    if others(file) and file.stat().st_mode & 0o020:
        do = f"If that is not meant: chmod g-w {file}"
        said.append(note(_ABOUT, f"The group of {file} may change it.", do))
    return said
