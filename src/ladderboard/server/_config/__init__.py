"""The settings of a server: one table, and their values from the environment and a file.

Needs no extra: settings can be shown where the server itself is not installed.
"""

from ladderboard.server._config._definitions import (
    CONFIG,
    SETTINGS,
    VARIABLES,
    Variable,
    has_password,
    sqlite_path,
    unknown_variables,
    without_password,
)
from ladderboard.server._config._sources import ResolvedSettings, Value, find_settings

__all__ = [
    "CONFIG",
    "SETTINGS",
    "VARIABLES",
    "ResolvedSettings",
    "Value",
    "Variable",
    "find_settings",
    "has_password",
    "sqlite_path",
    "unknown_variables",
    "without_password",
]
