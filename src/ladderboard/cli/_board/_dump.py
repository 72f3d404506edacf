"""``ladderboard board dump``, ``restore`` and ``keygen``: a board to another place."""

from pathlib import Path
from typing import Annotated

import typer

from ladderboard._formatting import printable
from ladderboard.cli._database import (
    DEFAULT_DATABASE,
    Database,
    KeyFile,
    Slug,
    open_board,
    open_database,
)
from ladderboard.cli._options import AsJson, PassphraseFile, PublicKey, read_passphrase
from ladderboard.cli._output import echo, echo_err, echo_json
from ladderboard.errors import InvalidSetting

_STATUS_TEXT = {"restored": "paused"}


def dump(
    board: Slug,
    *,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The file to make; one that is there stays.")
    ],
    to: PublicKey = None,
    passphrase_file: PassphraseFile = None,
    move: Annotated[
        bool,
        typer.Option("--move", help="Seal the board here: it goes on where the dump is restored."),
    ] = False,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Write a board with its history into one encrypted file.

    Without --move the dump is a copy: where it is restored it stays paused until somebody says how
    many questions may have been answered since.
    """
    from ladderboard.board import dump_board  # noqa: PLC0415 - keeps --help fast

    if to is not None and passphrase_file is not None:
        raise InvalidSetting("Give --to or --passphrase-file, not both.")
    with open_database(database, key_file) as boards:
        open_board(boards, board)  # before anybody types a passphrase
        words = read_passphrase(passphrase_file, new=True) if to is None else None
        head = dump_board(boards, board, out, passphrase=words, public_key=to, move=move)
    if as_json:
        said = {"file": str(out), "moved": move, "entries": head.entries, "head": head.hash.hex()}
        echo_json({"board": board, **said})
        return
    where = " It takes no more questions here." if move else ""
    echo(
        f"{board} is in {printable(out)}.{where} Elsewhere:",
        f"  ladderboard board restore {printable(out)}",
        f"head {head.hash.hex()}",
    )


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The dump.")],
    *,
    secret_key: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The secret key whose public key it was dumped to."),
    ] = None,
    passphrase_file: PassphraseFile = None,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Put the board of a dump into the database.

    The database is made if it is not there. Everything is checked first; where something is wrong
    the database stays as it was.
    """
    from ladderboard.board import restore_board  # noqa: PLC0415 - keeps --help fast

    if secret_key is not None and passphrase_file is not None:
        raise InvalidSetting("Give --secret-key or --passphrase-file, not both.")
    if not file.is_file():
        raise InvalidSetting(f"There is no file {file}.")
    words = read_passphrase(passphrase_file) if secret_key is None else None
    key = None if secret_key is None else str(secret_key)
    with open_database(database, key_file, create=True) as boards:
        slug = restore_board(boards, file, passphrase=words, secret_key=key)
        board = open_board(boards, slug)
        status, head = board.row().status, board.book.head().hash.hex()
    if as_json:
        echo_json({"board": slug, "status": status, "head": head})
        return
    echo(f"{slug} is restored, and {_STATUS_TEXT.get(status, status)}.")
    if status == "restored":
        echo(
            "Say how many questions may have been answered since the copy was made, too many",
            "rather than too few; they are taken off the budget:",
            f"  ladderboard board resume {slug} --charge N",
        )
    else:
        echo(f"Remove {printable(file)}: restored a second time it would answer a second time.")
    echo(f"head {head}")


def keygen(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to make; one that is there stays.")
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Make a secret key for dumps, and print its public key.

    The public key is alone on stdout. What is dumped to it can be opened with the file only.
    """
    from ladderboard.ledger import make_secret_key, write_public_key  # noqa: PLC0415 - same

    public = write_public_key(make_secret_key(file).public)
    if as_json:
        echo_json({"file": str(file), "public": public})
        return
    echo_err(f"{printable(file)} is made: keep it, and keep it to yourself. Its public key:")
    echo(public)
