"""The settings of a server: one class, and their values from the environment and a file."""

from ladderboard.server._settings._model import (
    SETTINGS,
    Setting,
    Settings,
    has_password,
    sqlite_path,
    without_password,
)
from ladderboard.server._settings._providers import Provider, Providers
from ladderboard.server._settings._sources import (
    CONFIG,
    VARIABLES,
    ResolvedSettings,
    Value,
    Variable,
    find_settings,
    format_value,
    unknown_variables,
)

__all__ = [
    "CONFIG",
    "SETTINGS",
    "VARIABLES",
    "Provider",
    "Providers",
    "ResolvedSettings",
    "Setting",
    "Settings",
    "Value",
    "Variable",
    "find_settings",
    "format_value",
    "has_password",
    "sqlite_path",
    "unknown_variables",
    "without_password",
]
