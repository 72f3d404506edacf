"""``ladderboard guard export``, ``backup`` and ``restore``."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard._formatting import printable
from ladderboard.cli._bundle import (
    confirm_closing,
    describe_bundle,
    echo_bundle,
    require_bundle_path,
)
from ladderboard.cli._guard._options import File, KeyFile, is_url, open_guard, require_guard_file
from ladderboard.cli._options import AsJson, parse_integer, require_new_file
from ladderboard.cli._output import echo, echo_json
from ladderboard.errors import InvalidSetting, LadderboardError, StorageFailed

if TYPE_CHECKING:
    from ladderboard.holdout import Holdout
    from ladderboard.ledger import ChainHead


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
    require_guard_file(file)
    if close:
        _close_and_reveal(file, out, labels=labels, yes=yes, key_file=key_file, as_json=as_json)
        return
    if labels or yes:
        raise InvalidSetting("Nothing is opened without --close; leave --labels and --yes out.")
    if key_file is not None:
        raise InvalidSetting("The public side needs no key; leave --key-file out.")
    _export_entries(file, out, as_json=as_json)


def _export_entries(file: str, out: Path, *, as_json: bool) -> None:
    from ladderboard.holdout import export_entries  # noqa: PLC0415 - keeps --help fast

    head = export_entries(file, out)
    found = {"file": file, "out": str(out), "entries": head.entries, "head": head.hash.hex()}
    if as_json:
        echo_json(found)
    else:
        echo(
            f"{head.entries:,} entries are in {printable(out)}. Its head is",
            head.hash.hex(),
            "Keep the head where nobody can change it, and tell it to those who should trust",
            "the ledger: with it they can tell whether anything before it was rewritten:",
            f"  ladderboard verify {printable(out)} --head {head.hash.hex()}",
        )


def _close_and_reveal(
    file: str, out: Path, *, labels: bool, yes: bool, key_file: Path | None, as_json: bool
) -> None:
    require_bundle_path(out)
    with open_guard(file, key_file) as guard:
        before = guard.meter.at.closed
        if not yes and (labels or not before):
            end = None if before else "it answers no more questions"
            confirm_closing(Path(file).name, end, out, labels=labels)
        if not before:
            guard.close_for_good()
        if not as_json:
            echo(f"{file} {'was closed before' if before else 'is closed for good'}.")
        head = _write_bundle(guard, file, out, labels=labels)
    if as_json:
        told = describe_bundle(out, head, labels=labels)
        echo_json({"file": file, "status": "closed", "before": before, "bundle": told})
    else:
        echo_bundle(out, head, labels=labels)


def _write_bundle(guard: "Holdout", file: str, out: Path, *, labels: bool) -> "ChainHead":
    """Write the bundle of a guard that is closed by now."""
    try:
        return guard.reveal(out, labels=labels)
    except LadderboardError as error:
        more = " --labels" if labels else ""
        raise StorageFailed(
            f"{error} {file} is closed, but its bundle was not written; mend what is wrong, and "
            f"write it with: ladderboard guard export {file} --close --out {out}{more}"
        ) from error


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
    from ladderboard.ledger import SqliteStorage  # noqa: PLC0415 - keeps --help fast

    require_guard_file(file)
    require_new_file(to)
    if not to.parent.is_dir():
        raise InvalidSetting(f"There is no directory {to.parent} for the copy.")
    with closing(SqliteStorage(file)) as storage:
        storage.backup(to)
    if as_json:
        echo_json({"file": file, "copy": str(to)})
    else:
        echo(
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
            parser=parse_integer,
            help="How many questions may have been answered since the copy was made.",
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
    from ladderboard.holdout import Holdout  # noqa: PLC0415 - keeps --help fast

    if copy is None or is_url(file) or Path(file).exists():
        require_guard_file(file)
    if copy is not None:
        require_guard_file(copy)
    with closing(Holdout.restore(file, charge, copy=copy, key_file=key_file)) as guard:
        remaining, head = guard.remaining, guard.head
    if as_json:
        echo_json(
            {
                "file": file,
                "charged": charge,
                "remaining": remaining,
                "head": head,
            }
        )
    else:
        said = "question was" if charge == 1 else "questions were"
        echo(f"{charge:,} {said} charged; {remaining:,} left. The ledger says so.")
