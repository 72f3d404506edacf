"""``ladderboard backup``: back up all boards of a database, check a backup, restore it."""

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from ladderboard._formatting import format_count, printable
from ladderboard.cli._app import LazyGroup
from ladderboard.cli._database import (
    DATABASE_VARIABLE,
    DEFAULT_DATABASE,
    Database,
    KeyFile,
    open_database,
    open_public_storage,
)
from ladderboard.cli._options import (
    AsJson,
    PassphraseFile,
    PublicKey,
    parse_integer,
    read_passphrase,
)
from ladderboard.cli._output import echo, echo_json
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.board import BackedUpBoard, Backup, BackupCheck, BackupGap

_HELP = """Back up all boards of a database while they are in use, try a backup out, restore it.

Exit codes: 0 done; 1 the check found something wrong; 2 what was given cannot be used; 4 the
database, a disk or a backup is not in order.
"""
_CLOCK_TOLERANCE = 3600.0  # seconds by which clocks may differ
_STATUS_SUFFIX = {"restored": ", and waits"}
_Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="A backup, or a folder of them: the newest is taken."),
]
_SecretKey = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The secret key whose public key it was made to."),
]


class _BackupGroup(LazyGroup):
    import_paths: ClassVar[dict[str, str]] = {
        "create": "_backup:create",
        "check": "_backup:check",
        "restore": "_backup:restore",
    }
    short_helps: ClassVar[dict[str, str]] = {
        "create": "Write all boards into a new folder.",
        "check": "Restore a backup to see that it can be.",
        "restore": "Put all boards into an empty database.",
    }


app = typer.Typer(
    name="backup",
    cls=_BackupGroup,
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback(help=_HELP)
def _backup() -> None:
    pass


def create(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Where backups are, made if it is not there; a folder is made in it.",
        ),
    ],
    *,
    to: PublicKey = None,
    passphrase_file: PassphraseFile = None,
    keep: Annotated[
        int | None,
        typer.Option(
            parser=parse_integer,
            metavar="N",
            help="Remove all backups here but the newest N, afterwards.",
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="BOARD", help="Leave a board out; may be given again."),
    ] = None,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Write all boards into a new folder, one encrypted file each.

    The server may run meanwhile. The folder appears when all of it is on the disk.
    """
    from ladderboard.board import back_up, check_backup_folder, prune_backups  # noqa: PLC0415

    if to is not None and passphrase_file is not None:
        raise InvalidSetting("Give --to or --passphrase-file, not both.")
    if keep is not None and keep < 1:
        raise InvalidSetting(f"--keep must be at least 1; got {keep}.")

    def tell(kept: "BackedUpBoard") -> None:
        if not as_json:
            size = _size(kept.bytes)
            echo(f"{kept.board}: {kept.entries:,} entries, {size}, head {kept.head}.")

    with open_database(database, key_file) as boards:
        left_out = tuple(without or ())
        check_backup_folder(boards, folder, left_out)  # before somebody types a passphrase
        words = read_passphrase(passphrase_file, new=True) if to is None else None
        made = back_up(boards, folder, passphrase=words, public_key=to, without=left_out, tell=tell)
    gone = [] if keep is None else prune_backups(made, keep)
    if as_json:
        boards_said = [board._asdict() for board in made.boards]
        removed = [str(each) for each in gone]
        said: dict[str, Any] = {"folder": str(made.path), "time": made.time, "boards": boards_said}
        echo_json({**said, "without": list(made.without), "removed": removed})
        return
    size = _size(sum(board.bytes for board in made.boards))
    echo(f"{printable(made.path)} holds {format_count(len(made.boards), 'board')}, {size}.")
    for each in gone:
        echo(f"{printable(each)} was removed.")


def check(
    folder: _Folder,
    *,
    secret_key: _SecretKey = None,
    passphrase_file: PassphraseFile = None,
    within: Annotated[
        int | None,
        typer.Option(
            parser=parse_integer,
            metavar="HOURS",
            help="Fail if the backup is older than so many hours.",
        ),
    ] = None,
    scratch: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Restore into a schema of its own of this PostgreSQL database, which is removed "
            "again; a temporary file if left out.",
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar=DATABASE_VARIABLE,
            help="The database in use, which is only read: tells what the backup lacks.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Restore every board of a backup where nobody asks, and recompute every release.

    What was restored is removed again, and nothing else is touched.
    """
    from ladderboard.board import (  # noqa: PLC0415
        check_backup,
        compare_with_database,
        find_backup,
    )

    backup, words, key = _find_backup_and_key(folder, secret_key, passphrase_file, find_backup)
    hours = max(time.time() - backup.time, 0) / 3600
    ahead = backup.time > time.time() + _CLOCK_TOLERANCE  # it would be the newest for ever
    late = ahead or (within is not None and hours > within)
    if not as_json:
        said = f"made {_format_age(hours)} by ladderboard {backup.ladderboard}"
        echo(f"{printable(backup.path)}, {said}:")

    def tell(each: "BackupCheck") -> None:
        if as_json:
            return
        asked = format_count(each.questions or 0, "question")
        good = f"restored and recomputed, {asked}."
        echo(f"  {each.board}: {each.wrong or good}")

    found = check_backup(backup, passphrase=words, secret_key=key, scratch=scratch, tell=tell)
    lacks = None
    if database is not None:
        with closing(open_public_storage(database)) as storage:
            lacks = compare_with_database(backup, storage, found)
    good = not late and not any(each.wrong for each in found)
    good = good and (lacks is None or not lacks.strange)
    if as_json:
        told = [each._asdict() for each in found]
        lacking = None if lacks is None else lacks._asdict()
        head = {"folder": str(backup.path), "time": backup.time, "good": good, "late": late}
        echo_json({**head, "boards": told, "compare_with_database": lacking})
    else:
        _echo_changes_since(backup, lacks)
        if ahead:
            echo("It was made in the future: a clock was wrong, here or there. Make another one.")
        elif late:
            echo(f"It is older than {within:,} hours: were backups made since?")
        echo("This backup can be restored." if good else "Something is wrong with this backup.")
    if not good:
        raise typer.Exit(1)


def _echo_changes_since(backup: "Backup", lacks: "BackupGap | None") -> None:
    if backup.without:
        echo(f"Left out on purpose: {', '.join(backup.without)}.")
    if lacks is None:
        return
    for board, count in lacks.entries.items():
        asked = lacks.questions.get(board, 0)
        if count:
            echo(f"Since then {board} has {count:,} entries more, {asked:,} of them questions.")
    for board in lacks.strange:
        echo(f"{board} in the database in use is not the board of the backup, or not there.")
    for board in lacks.lacking:
        if board not in backup.without:
            echo(f"{board} was made since, and is not in the backup.")


def restore(
    folder: _Folder,
    *,
    secret_key: _SecretKey = None,
    passphrase_file: PassphraseFile = None,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Put all boards of a backup into a database, which is made if it is not there.

    It must hold no other boards. Each board waits until somebody says how many questions may have
    been answered since the backup was made.
    """
    from ladderboard.board import (  # noqa: PLC0415
        find_backup,
        restore_backup,
    )

    backup, words, key = _find_backup_and_key(folder, secret_key, passphrase_file, find_backup)
    told = []
    with open_database(database, key_file, create=True) as boards:

        def tell(slug: str, new: bool) -> None:
            board = boards.open(slug)
            status, head = board.row().status, board.book.head().hash.hex()
            told.append({"board": slug, "new": new, "status": status, "head": head})
            if not as_json:
                here = "is restored" if new else "was here already and stays as it is"
                echo(f"{slug} {here}{_STATUS_SUFFIX.get(status, f', {status}')}; head {head}.")

        restore_backup(boards, backup, passphrase=words, secret_key=key, tell=tell)
    if as_json:
        echo_json({"folder": str(backup.path), "time": backup.time, "boards": told})
        return
    waiting = [each["board"] for each in told if each["status"] == "restored"]
    if waiting:
        echo(
            "Say of each how many questions may have been answered since, too many rather than too",
            "few; they are taken off the budget:",
            *(f"  ladderboard board resume {slug} --charge N" for slug in waiting),
        )


def _find_backup_and_key(
    folder: Path, secret_key: Path | None, file: Path | None, find: Any
) -> tuple["Backup", str | None, str | None]:
    if secret_key is not None and file is not None:
        raise InvalidSetting("Give --secret-key or --passphrase-file, not both.")
    backup = find(folder)
    if secret_key is not None:
        return backup, None, str(secret_key)
    return backup, read_passphrase(file), None


def _format_age(hours: float) -> str:
    if hours < 1:
        return "less than an hour ago"
    return f"{hours:,.0f} hours ago" if hours < 72 else f"{hours / 24:,.0f} days ago"


def _size(count: int) -> str:
    """Return a number of bytes for people; a dump has some ten thousand at least.

    >>> _size(65_552), _size(3_200_000_000)
    ('0.1 MB', '3,200.0 MB')
    """
    return f"{count / 1e6:,.1f} MB"
