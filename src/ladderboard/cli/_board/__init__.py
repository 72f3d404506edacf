"""``ladderboard board``: create, run, close and move the boards of a database."""

from ladderboard.cli._app import make_group

__all__ = ["app"]

_HELP = """Create, run and move boards. Anyone who can open the database acts as the organiser.

These commands work while the server runs. Exit codes: 0 done; 1 a check found problems; 2 invalid
arguments; 3 the board is closed or has moved; 4 the database or a file is damaged or cannot be
used.
"""


app = make_group(
    "board",
    _HELP,
    {
        "new": "_board._create:new",
        "check": "_board._create:check",
        "create": "_board._create:create",
        "list": "_board._show:list_",
        "show": "_board._show:show",
        "pause": "_board._amend:pause",
        "resume": "_board._amend:resume",
        "amend": "_board._amend:amend",
        "data": "_board._amend:data",
        "close": "_board._close:close",
        "token": "_board._tokens:token",
        "tokens": "_board._tokens:tokens",
        "webhooks": "_board._tokens:webhooks",
        "dump": "_board._dump:dump",
        "restore": "_board._dump:restore",
        "keygen": "_board._dump:keygen",
    },
    {
        "new": "Create a board's folder, or an example.",
        "check": "Check a board's folder before publishing it.",
        "create": "Create a board in the database.",
        "amend": "Change rules, or correct labels.",
        "data": "Replace the files for participants.",
        "close": "Close a board and publish its bundle.",
        "tokens": "List a board's valid tokens, or end one.",
        "webhooks": "List, add or remove webhooks.",
        "dump": "Write a board to one encrypted file.",
        "keygen": "Generate a key for dumps.",
    },
)
