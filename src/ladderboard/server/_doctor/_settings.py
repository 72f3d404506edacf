"""The settings: whether they can be understood, and whether others could change them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ladderboard.errors import InvalidSetting
from ladderboard.server._config import find_settings, strangers
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
    if found.file is None:
        alone = "There is no settings file; the environment and defaults count."
        return [ok(_ABOUT, alone), *said], found
    said.insert(0, ok(_ABOUT, f"{found.file} can be read."))
    owner = found.file.stat().st_uid
    if hasattr(os, "geteuid") and owner not in {0, os.geteuid()}:
        who = f"{found.file} belongs to another user, number {owner}, who may change it."
        said.append(note(_ABOUT, who, f"If not meant: chown root {found.file}"))
    if others(found.file) == "its group" and found.file.stat().st_mode & 0o020:
        said.append(
            note(_ABOUT, f"The group of {found.file} may change it.", f"chmod g-w {found.file}")
        )
    return said, found
