"""``ladderboard board dump``, ``restore`` and ``keygen``: copying or moving a board."""

from pathlib import Path
from typing import Annotated

import typer

from ladderboard._formatting import printable
from ladderboard.cli._database import (
    DEFAULT_DATABASE,
    Database,
    KeyFile,
    Slug,
    database_options,
    open_board,
    open_database,
)
from ladderboard.cli._options import (
    AsJson,
    PassphraseFile,
    PublicKey,
    read_passphrase,
    read_passphrase_of,
)
from ladderboard.cli._output import echo, echo_err, echo_json
from ladderboard.errors import InvalidSetting

_STATUS_TEXT = {"restored": "paused"}


def dump(
    board: Slug,
    *,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The file to write; an existing file is not overwritten."
        ),
    ],
    to: PublicKey = None,
    passphrase_file: PassphraseFile = None,
    move: Annotated[
        bool,
        typer.Option(
            "--move", help="Move the board: it ends here and continues where the dump is restored."
        ),
    ] = False,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Write a board with its history to one encrypted file.

    Without --move the dump is a copy: when restored, it stays paused until board resume charges the
    submissions that may have been answered since.
    """
    from ladderboard.board import dump_board  # noqa: PLC0415 - keeps --help fast

    if to is not None and passphrase_file is not None:
        raise InvalidSetting("Give --to or --passphrase-file, not both.")
    with open_database(database, key_file) as boards:
        open_board(boards, board)  # before prompting for a passphrase
        passphrase = read_passphrase(passphrase_file, new=True) if to is None else None
        head = dump_board(boards, board, out, passphrase=passphrase, public_key=to, move=move)
    if as_json:
        dumped = {"file": str(out), "moved": move, "entries": head.entries}
        echo_json({"board": board, **dumped, "head": head.hash.hex()})
        return
    moved = " It accepts no more submissions here." if move else ""
    option = "" if to is None else " --secret-key SECRET.key"
    echo(
        f"{board} is in {printable(out)}.{moved} To restore it elsewhere:",
        f"  ladderboard board restore {printable(out)}{option}",
        f"head {head.hash.hex()}",
    )


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The dump.")],
    *,
    secret_key: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The secret key of the public key it was encrypted to."),
    ] = None,
    passphrase_file: PassphraseFile = None,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Restore the board of a dump to the database.

    The database is created if needed. The dump is checked first; on any error the database stays
    unchanged.
    """
    from ladderboard.board import restore_board  # noqa: PLC0415 - keeps --help fast

    if secret_key is not None and passphrase_file is not None:
        raise InvalidSetting("Give --secret-key or --passphrase-file, not both.")
    if not file.is_file():
        raise InvalidSetting(f"There is no file {file}.")
    passphrase = read_passphrase_of([file], passphrase_file) if secret_key is None else None
    key = None if secret_key is None else str(secret_key)
    with open_database(database, key_file, create=True) as boards:
        slug = restore_board(boards, file, passphrase=passphrase, secret_key=key)
        board = open_board(boards, slug)
        status, head = board.row().status, board.book.head().hash.hex()
    if as_json:
        echo_json({"board": slug, "status": status, "head": head})
        return
    echo(f"{slug} is restored, and {_STATUS_TEXT.get(status, status)}.")
    if status == "restored":
        echo(
            "Resume it with the number of submissions that may have been answered since, too many",
            "rather than too few; they are taken off the budget:",
            f"  ladderboard board resume {slug} --charge N{database_options(database, key_file)}",
        )
    else:
        echo(f"Remove {printable(file)}: if it is restored twice, two copies answer submissions.")
    echo(f"head {head}")


def keygen(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The file to write; an existing file is not overwritten."
        ),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Generate a secret key for dumps, and print its public key.

    The public key is alone on stdout. Dumps encrypted to it can only be opened with the file.
    """
    from ladderboard.ledger import make_secret_key, write_public_key  # noqa: PLC0415 - same

    public = write_public_key(make_secret_key(file).public)
    if as_json:
        echo_json({"file": str(file), "public": public})
        return
    echo_err(f"{printable(file)} is created. Keep it safe and secret. Its public key:")
    echo(public)
