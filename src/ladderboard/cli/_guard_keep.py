"""``ladderboard guard backup`` and ``restore``: copies, and going on with one."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from ladderboard.cli._guard_options import AsJson, File, KeyFile, check_file, is_url, refuse_taken
from ladderboard.cli._numbers import whole
from ladderboard.cli._said import printable, say, say_json
from ladderboard.errors import InvalidSetting

__all__ = ["backup", "restore"]


def backup(
    file: File,
    to: Annotated[
        Path, typer.Argument(metavar="TO", help="The copy to make; one that is there stays.")
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Copy the guard's file while it is in use.

    The copy holds all secrets of the file, or is encrypted as it is. It has no mark: whoever goes
    on with it must say how many questions may have been answered since, with guard restore.
    """
    from ladderboard.ledger import SqliteStorage  # noqa: PLC0415 - the help must not wait

    check_file(file)
    refuse_taken(to)
    if not to.parent.is_dir():
        raise InvalidSetting(f"There is no directory {to.parent} for the copy.")
    with closing(SqliteStorage(file)) as storage:
        storage.backup(to)
    if as_json:
        say_json({"file": file, "copy": str(to)})
    else:
        say(
            f"{printable(to)} is a copy of {printable(file)}, as secret as that. To go on with it:",
            f"  ladderboard guard restore {printable(to)} --charge N",
            "where N questions may have been answered since now.",
        )


def restore(
    file: File,
    *,
    charge: Annotated[
        int,
        typer.Option(
            parser=whole, help="How many questions may have been answered since the copy was made."
        ),
    ],
    copy: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="COPY",
            help="Put this copy in the place of FILE, which is kept as FILE.replaced-N.",
        ),
    ] = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Go on with an old copy of a guard's file that was put back, or put it back with --from.

    The questions charged are taken off the budget, and the ledger says so. Charge too many rather
    than too few: what was answered and is not counted is not in the certificate.
    """
    from ladderboard.holdout import Holdout  # noqa: PLC0415 - the help must not wait

    if copy is None or is_url(file) or Path(file).exists():
        check_file(file)
    if copy is not None:
        check_file(copy)
    with closing(Holdout.restore(file, charge, copy=copy, key_file=key_file)) as guard:
        remaining, head = guard.remaining, guard.head
    if as_json:
        say_json(
            {
                "file": file,
                "charged": charge,
                "remaining": remaining,
                "head": head,
            }
        )
    else:
        said = "question was" if charge == 1 else "questions were"
        say(f"{charge:,} {said} charged; {remaining:,} left. The ledger says so.")
