"""What a server is set to: one table, and what the environment and a file say of it.

Nothing here needs an extra: settings can be looked at where the server itself is not installed.
"""

from ladderboard.server._config._address import has_password, without_password
from ladderboard.server._config._found import Found, Value, find_settings
from ladderboard.server._config._setting import Setting
from ladderboard.server._config._table import SETTINGS
from ladderboard.server._config._variables import CONFIG, VARIABLES, Variable, strangers

__all__ = [
    "CONFIG",
    "SETTINGS",
    "VARIABLES",
    "Found",
    "Setting",
    "Value",
    "Variable",
    "find_settings",
    "has_password",
    "strangers",
    "without_password",
]
