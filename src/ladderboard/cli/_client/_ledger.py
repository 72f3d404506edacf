"""``ladderboard ledger``: download the public ledger of a board."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard._atomic_file import new_file
from ladderboard._formatting import printable
from ladderboard.cli._client._options import BoardName, Insecure, Quiet, Url, open_client
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_err, echo_json
from ladderboard.errors import BrokenLedger, InvalidSetting

if TYPE_CHECKING:
    from ladderboard.client import Client
    from ladderboard.ledger import ChainHead, Entry


def ledger(
    board: BoardName,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The file to write; an existing file is not overwritten."
        ),
    ] = None,
    url: Url = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fetch the public ledger of a board: every entry, byte for byte as it was hashed.

    Entries are lines of JSON, oldest first, printed or written to a file. The hash chain is checked
    up to the head that the board reports. Keep the head that is printed at the end: it shows later
    whether entries before it were rewritten.

    Exit codes: 0 fetched and valid; 2 invalid arguments; 4 the server cannot be reached, or the
    ledger is damaged.
    """
    if as_json and out is None:
        raise InvalidSetting(
            "--json describes the file that is written, so it needs --out FILE. Without --json the "
            "entries are printed, one JSON object per line."
        )
    with open_client(board, url, insecure=insecure, quiet=quiet or as_json) as (client, slug):
        entries = _fetch_entries(client, slug)
        head = _print_entries(entries) if out is None else _write_entries(entries, out)
    if head is None:
        return
    head_hash = head.hash.hex()
    if as_json:
        echo_json({"board": slug, "out": str(out), "entries": head.entries, "head": head_hash})
    elif out is not None:
        echo(f"{head.entries:,} entries are in {printable(out)}. Its head is", head_hash)
    elif not quiet:
        echo_err(f"{head.entries:,} entries. The head is", head_hash)


def _fetch_entries(client: "Client", slug: str) -> "Iterator[Entry]":
    """Yield the entries of a board, page by page, checking the chain of hashes."""
    from ladderboard.ledger import iter_checked_entries  # noqa: PLC0415 - keeps --help fast

    reported, count = client.board(slug).head, 0
    for entry, _ in iter_checked_entries(client.ledger(slug)):
        count += 1
        if count == reported.entries and entry.hash.hex() != reported.hash:
            raise BrokenLedger(
                f"Entry {count - 1} of the ledger is not the head that the board reports."
            )
        yield entry
    if count < reported.entries:
        raise BrokenLedger(
            f"The board reports {reported.entries:,} entries; the ledger has {count:,}."
        )


def _print_entries(entries: "Iterator[Entry]") -> "ChainHead | None":
    """Print entries and return the head; None if the reader has gone, as with ``| head``."""
    try:
        head = _copy_entries(
            entries, _echo_entry if sys.stdout.isatty() else sys.stdout.buffer.write
        )
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return None
    return head


def _echo_entry(line: bytes) -> None:
    echo(line.decode("ascii").rstrip("\n"))  # escapes control characters


def _write_entries(entries: "Iterator[Entry]", out: Path) -> "ChainHead":
    """Write entries to a new file, or remove it on an error, and return the head."""
    with new_file(out) as file:
        return _copy_entries(entries, file.write)


def _copy_entries(entries: "Iterator[Entry]", write: Callable[[bytes], object]) -> "ChainHead":
    from ladderboard.ledger import ChainHead  # noqa: PLC0415 - keeps --help fast

    head = ChainHead(0, bytes(32))
    for entry in entries:
        write(entry.encoded + b"\n")
        head = ChainHead(head.entries + 1, entry.hash)
    return head
