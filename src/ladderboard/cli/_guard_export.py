"""``ladderboard guard export``: the public side of the ledger, or, at the end, everything."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard.cli._bundle import ask_whether, check_place, describe_bundle, say_bundle
from ladderboard.cli._guard_options import AsJson, File, KeyFile, check_file, open_guard
from ladderboard.cli._said import printable, say, say_json
from ladderboard.errors import InvalidSetting, LadderboardError, StorageFailed

if TYPE_CHECKING:
    from ladderboard.holdout import Holdout
    from ladderboard.ledger import Head

__all__ = ["export"]


def export(
    file: File,
    *,
    out: Annotated[
        Path, typer.Option(metavar="BUNDLE", help="The file to write; one that is there stays.")
    ],
    close: Annotated[
        bool,
        typer.Option(
            "--close", help="Close the guard for good, and open the noise key and every risk, too."
        ),
    ] = False,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels/--no-labels", help="With --close, open the labels in the bundle, too."
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --close, do not ask whether it is meant.")
    ] = False,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the public side of the ledger: every entry, the very bytes that were hashed.

    One entry is a line of JSON, the oldest first, nothing before, between or after. No key file is
    needed, and nothing secret leaves. Keep the head that is printed: whoever has it can tell later
    whether anything before it was rewritten.

    With --close the guard ends for good, and what is written is a bundle instead: the ledger with
    the noise key, every risk and every draw, by which anybody who gets it can check every release.
    That spends the holdout, so it cannot be undone. Of a guard that is closed already the bundle is
    written again.
    """
    check_file(file)
    if close:
        _reveal(file, out, labels=labels, yes=yes, key_file=key_file, as_json=as_json)
        return
    if labels or yes:
        raise InvalidSetting("Nothing is opened without --close; leave --labels and --yes out.")
    if key_file is not None:
        raise InvalidSetting("The public side needs no key; leave --key-file out.")
    _export(file, out, as_json=as_json)


def _export(file: str, out: Path, *, as_json: bool) -> None:
    from ladderboard.holdout import export_entries  # noqa: PLC0415 - the help must not wait

    head = export_entries(file, out)
    found = {"file": file, "out": str(out), "entries": head.entries, "head": head.hash.hex()}
    if as_json:
        say_json(found)
    else:
        say(
            f"{head.entries:,} entries are in {printable(out)}. Its head is",
            head.hash.hex(),
            "Keep the head where nobody can change it, and tell it to those who should trust",
            "the ledger: with it they can tell whether anything before it was rewritten:",
            f"  ladderboard verify {printable(out)} --head {head.hash.hex()}",
        )


def _reveal(
    file: str, out: Path, *, labels: bool, yes: bool, key_file: Path | None, as_json: bool
) -> None:
    check_place(out)
    with open_guard(file, key_file) as guard:
        before = guard.meter.at.closed
        if not yes and (labels or not before):
            end = None if before else "it answers no more questions"
            ask_whether(Path(file).name, end, out, labels=labels)
        if not before:
            guard.close_for_good()
        if not as_json:
            say(f"{file} {'was closed before' if before else 'is closed for good'}.")
        head = _write(guard, file, out, labels=labels)
    if as_json:
        told = describe_bundle(out, head, labels=labels)
        say_json({"file": file, "status": "closed", "before": before, "bundle": told})
    else:
        say_bundle(out, head, labels=labels)


def _write(guard: "Holdout", file: str, out: Path, *, labels: bool) -> "Head":
    """Write the bundle of a guard that is closed by now."""
    try:
        return guard.reveal(out, labels=labels)
    except LadderboardError as error:
        more = " --labels" if labels else ""
        raise StorageFailed(
            f"{error} {file} is closed, but its bundle was not written; mend what is wrong, and "
            f"write it with: ladderboard guard export {file} --close --out {out}{more}"
        ) from error
