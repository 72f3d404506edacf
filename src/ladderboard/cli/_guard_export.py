"""``ladderboard guard export``: the public side of the ledger, as it was written."""

from pathlib import Path
from typing import Annotated

import typer

from ladderboard.cli._guard_options import AsJson, File, check_file
from ladderboard.cli._said import printable, say, say_json

__all__ = ["export"]


def export(
    file: File,
    *,
    out: Annotated[
        Path, typer.Option(metavar="BUNDLE", help="The file to write; one that is there stays.")
    ],
    as_json: AsJson = False,
) -> None:
    """Write the public side of the ledger: every entry, the very bytes that were hashed.

    One entry is a line of JSON, the oldest first, nothing before, between or after. No key file is
    needed, and nothing secret leaves. Keep the head that is printed: whoever has it can tell later
    whether anything before it was rewritten.
    """
    from ladderboard.holdout import export_entries  # noqa: PLC0415 - the help must not wait

    check_file(file)
    head = export_entries(file, out)
    found = {"file": file, "out": str(out), "entries": head.entries, "head": head.hash.hex()}
    if as_json:
        say_json(found)
    else:
        say(
            f"{head.entries:,} entries are in {printable(out)}. Its head is",
            head.hash.hex(),
            "Keep the head where nobody can change it, and tell it to those who should trust the",
            "ledger: with it they can tell whether anything before it was rewritten.",
        )
