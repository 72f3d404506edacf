"""``ladderboard backup``: all boards of a database, kept elsewhere."""

from typing import ClassVar

import typer

from ladderboard.cli._verbs import Verbs

__all__ = ["app"]

_HELP = """Back up all boards of a database while they are in use, try a backup out, restore it.

Exit codes: 0 done; 1 the check found something wrong; 2 what was given cannot be used; 4 the
database, a disk or a backup is not in order.
"""


class _Backup(Verbs):
    homes: ClassVar[dict[str, str]] = {
        "create": "_backup_verbs:create",
        "check": "_backup_verbs:check",
        "restore": "_backup_verbs:restore",
    }
    short: ClassVar[dict[str, str]] = {
        "create": "Write all boards into a new folder.",
        "check": "Restore a backup to see that it can be.",
        "restore": "Put all boards into an empty database.",
    }


app = typer.Typer(
    name="backup",
    cls=_Backup,
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback(help=_HELP)
def _backup() -> None:
    pass
