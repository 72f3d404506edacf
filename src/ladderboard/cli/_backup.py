"""``ladderboard backup``: back up all boards of a database, check a backup, restore it."""

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard._formatting import format_count, format_size, printable
from ladderboard.cli._app import make_group
from ladderboard.cli._database import (
    DATABASE_VARIABLE,
    DEFAULT_DATABASE,
    Database,
    KeyFile,
    database_options,
    open_database,
    open_public_storage,
)
from ladderboard.cli._options import (
    AsJson,
    PassphraseFile,
    PublicKey,
    parse_integer,
    read_passphrase,
    read_passphrase_of,
)
from ladderboard.cli._output import echo, echo_json
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.board import BackedUpBoard, Backup, BackupCheck, BackupGap

_HELP = """Back up all boards of a database while they are in use; check and restore backups.

Exit codes: 0 done; 1 the check found a problem, or there was nothing to restore; 2 invalid
arguments; 4 the database, a disk or a backup is damaged or cannot be used.
"""
_CLOCK_TOLERANCE = 3600.0  # seconds that the clocks of two machines may differ by
_STATUS_SUFFIX = {"restored": ", and paused"}
_Folder = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER", help="A backup, or a folder of backups, whose newest is used."
    ),
]
_SecretKey = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The secret key of the public key it was encrypted to."),
]


app = make_group(
    "backup",
    _HELP,
    {
        "create": "_backup:create",
        "check": "_backup:check",
        "restore": "_backup:restore",
    },
    {
        "create": "Write all boards to a new folder.",
        "check": "Test a backup by restoring it.",
        "restore": "Restore all boards to an empty database.",
    },
)


def create(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="The folder of backups, created if needed; each backup is a new folder in it.",
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
            help="Afterwards, remove all backups here but the newest N.",
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="BOARD", help="Leave this board out; may be given several times."),
    ] = None,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Write all boards to a new folder, one encrypted file each.

    The server may keep running. The folder appears only when it is complete on the disk.
    """
    from ladderboard.board import back_up, check_backup_folder, prune_backups  # noqa: PLC0415

    if to is not None and passphrase_file is not None:
        raise InvalidSetting("Give --to or --passphrase-file, not both.")
    if keep is not None and keep < 1:
        raise InvalidSetting(f"--keep must be at least 1; got {keep}.")

    def report(board: "BackedUpBoard") -> None:
        if not as_json:
            size = format_size(board.bytes)
            echo(f"{board.board}: {board.entries:,} entries, {size}, head {board.head}.")

    with open_database(database, key_file) as boards:
        left_out = tuple(without or ())
        check_backup_folder(boards, folder, left_out)  # before prompting for a passphrase
        passphrase = read_passphrase(passphrase_file, new=True) if to is None else None
        backup = back_up(
            boards, folder, passphrase=passphrase, public_key=to, without=left_out, on_board=report
        )
    removed = [] if keep is None else prune_backups(backup, keep)
    if as_json:
        echo_json(
            {
                "folder": str(backup.path),
                "time": backup.time,
                "boards": [board._asdict() for board in backup.boards],
                "without": list(backup.without),
                "removed": [str(path) for path in removed],
            }
        )
        return
    size = format_size(sum(board.bytes for board in backup.boards))
    echo(f"{printable(backup.path)} holds {format_count(len(backup.boards), 'board')}, {size}.")
    for path in removed:
        echo(f"Removed {printable(path)}.")


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
            help="Fail if the backup is older than this.",
        ),
    ] = None,
    scratch: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Restore to a temporary schema of this PostgreSQL database; to a temporary "
            "file if left out.",
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar=DATABASE_VARIABLE,
            help="The database in use, to compare with; it is only read.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Test a backup: restore every board to a temporary database and recompute every release.

    The temporary database is removed afterwards; nothing else is changed.
    """
    from ladderboard.board import (  # noqa: PLC0415
        check_backup,
        compare_with_database,
    )

    backup, passphrase, key = _find_backup(folder, secret_key, passphrase_file)
    hours = max(time.time() - backup.time, 0) / 3600
    in_future = backup.time > time.time() + _CLOCK_TOLERANCE  # it would stay the newest for ever
    late = in_future or (within is not None and hours > within)
    if not as_json:
        origin = f"made {_format_age(hours)} by ladderboard {backup.ladderboard}"
        echo(f"{printable(backup.path)}, {origin}:")

    def report(check: "BackupCheck") -> None:
        if as_json:
            return
        count = format_count(check.questions or 0, "submission")
        echo(f"  {check.board}: {check.wrong or f'restored and recomputed, {count}.'}")

    checks = check_backup(
        backup, passphrase=passphrase, secret_key=key, scratch=scratch, on_board=report
    )
    changes = None
    if database is not None:
        with closing(open_public_storage(database)) as storage:
            changes = compare_with_database(backup, storage, checks)
    good = not late and not any(check.wrong for check in checks)
    good = good and (changes is None or not changes.diverged_boards)
    if as_json:
        echo_json(
            {
                "folder": str(backup.path),
                "time": backup.time,
                "good": good,
                "late": late,
                "boards": [check._asdict() for check in checks],
                "since": None if changes is None else changes._asdict(),
            }
        )
    else:
        _echo_changes_since(backup, changes)
        if in_future:
            echo("Its time is in the future: a clock was wrong. Make another backup.")
        elif late:
            echo(f"It is older than {within:,} hours. Check that backups are still made.")
        echo("This backup can be restored." if good else "This backup has problems.")
    if not good:
        raise typer.Exit(1)


def _echo_changes_since(backup: "Backup", changes: "BackupGap | None") -> None:
    if backup.without:
        echo(f"Left out on purpose: {', '.join(backup.without)}.")
    if changes is None:
        return
    for board, count in changes.entries.items():
        questions = changes.questions.get(board, 0)
        if count:
            entries = format_count(count, "more entry", "more entries")
            echo(f"Since then {board} has {entries}, {questions:,} of them submissions.")
    for board in changes.diverged_boards:
        echo(f"{board} is missing in the database in use, or is another board there.")
    for board in changes.missing_boards:
        if board not in backup.without:
            echo(f"{board} was created since, and is not in the backup.")


def restore(
    folder: _Folder,
    *,
    secret_key: _SecretKey = None,
    passphrase_file: PassphraseFile = None,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Restore all boards of a backup to a database, which is created if needed.

    The database must hold no other boards. Each board stays paused until board resume charges the
    submissions that may have been answered since the backup.
    """
    from ladderboard.board import (  # noqa: PLC0415
        restore_backup,
    )

    backup, passphrase, key = _find_backup(folder, secret_key, passphrase_file)
    heads = {board.board: board.head for board in backup.boards}
    restored = []
    new_key = key_file is not None and not Path(key_file).exists()
    with open_database(database, key_file, create=True) as boards:

        def report(slug: str, new: bool) -> None:
            board = boards.open(slug)
            status, head = board.row().status, board.book.head().hash.hex()
            restored.append({"board": slug, "new": new, "status": status, "head": head})
            if not as_json:
                outcome = "is restored" if new else "exists already and stays as it is"
                origin = f"continues {heads[slug]}; " if new and head != heads[slug] else ""
                status_text = _STATUS_SUFFIX.get(status, f", {status}")
                echo(f"{slug} {outcome}{status_text}; {origin}head {head}.")

        restore_backup(boards, backup, passphrase=passphrase, secret_key=key, on_board=report)
    changed = any(row["new"] for row in restored)
    if as_json:
        echo_json({"folder": str(backup.path), "time": backup.time, "boards": restored})
    else:
        echo(*([] if changed else ["Nothing was restored."]))
        if new_key:
            echo(f"{printable(key_file)} is created; keep a copy: without it the boards are lost.")
        waiting = [str(row["board"]) for row in restored if row["status"] == "restored"]
        echo(*_resume_lines(waiting, database_options(database, key_file)))
    if not changed:
        raise typer.Exit(1)


def _resume_lines(slugs: list[str], options: str) -> list[str]:
    if not slugs:
        return []
    return [
        "Resume each with the number of submissions that may have been answered since, too many",
        "rather than too few; they are taken off the budget:",
        *(f"  ladderboard board resume {slug} --charge N{options}" for slug in slugs),
    ]


def _find_backup(
    folder: Path, secret_key: Path | None, passphrase_file: Path | None
) -> tuple["Backup", str | None, str | None]:
    """Return a backup, and the passphrase or the secret key to open it with."""
    from ladderboard.board import find_backup  # noqa: PLC0415 - keeps --help fast

    if secret_key is not None and passphrase_file is not None:
        raise InvalidSetting("Give --secret-key or --passphrase-file, not both.")
    backup = find_backup(folder)
    if secret_key is not None:
        return backup, None, str(secret_key)
    dumps = [backup.path / board.file for board in backup.boards]
    return backup, read_passphrase_of(dumps, passphrase_file), None


def _format_age(hours: float) -> str:
    if hours < 1:
        return "less than an hour ago"
    return f"{hours:,.0f} hours ago" if hours < 72 else f"{hours / 24:,.0f} days ago"
