"""What a server is set to: one table, and what the environment and a file say of it.

Nothing here needs an extra: settings can be looked at where the server itself is not installed.
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
