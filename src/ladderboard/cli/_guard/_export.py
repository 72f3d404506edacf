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
from ladderboard.cli._guard._files import File, KeyFile, is_url, require_guard_file
from ladderboard.cli._options import AsJson, parse_integer, require_new_file
from ladderboard.cli._output import echo, echo_json
from ladderboard.errors import InvalidSetting, LadderboardError, StorageFailed

if TYPE_CHECKING:
    from ladderboard.holdout import Gate, Holdout
    from ladderboard.ledger import ChainHead


def export(
    file: File,
    *,
    out: Annotated[
        Path,
        typer.Option(
            metavar="BUNDLE", help="The file to write; an existing file is not overwritten."
        ),
    ],
    close: Annotated[
        bool,
        typer.Option(
            "--close",
            help="Close the file for good, and publish the noise key and every result, too.",
        ),
    ] = False,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels/--no-labels", help="With --close, publish the labels in the bundle, too."
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --close, do not ask for confirmation.")
    ] = False,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the public ledger: every entry, byte for byte as it was hashed.

    Entries are lines of JSON, oldest first. No key file is needed, and nothing secret is written.
    Keep the head that is printed: it shows later whether entries before it were rewritten.

    With --close the guard or gate is closed for good, and a bundle is written instead: the ledger
    with the noise key, and the exact result and noise of every answer: anyone with it can check
    every answer. The holdout cannot be used again, and closing cannot be undone. For a closed file
    this writes the bundle again.
    """
    require_guard_file(file)
    if close:
        _close_and_reveal(file, out, labels=labels, yes=yes, key_file=key_file, as_json=as_json)
        return
    if labels or yes:
        raise InvalidSetting("--labels and --yes need --close.")
    if key_file is not None:
        raise InvalidSetting("The public ledger needs no key; leave out --key-file.")
    _export_entries(file, out, as_json=as_json)


def _export_entries(file: str, out: Path, *, as_json: bool) -> None:
    from ladderboard.holdout import export_entries  # noqa: PLC0415 - keeps --help fast

    head = export_entries(file, out)
    exported = {"file": file, "out": str(out), "entries": head.entries, "head": head.hash.hex()}
    if as_json:
        echo_json(exported)
    else:
        echo(
            f"{head.entries:,} entries are in {printable(out)}. Its head is",
            head.hash.hex(),
            "Publish the head, or keep it where it cannot be changed: it shows whether anything",
            "before it was rewritten:",
            f"  ladderboard verify {printable(out)} --head {head.hash.hex()}",
        )


def _close_and_reveal(
    file: str, out: Path, *, labels: bool, yes: bool, key_file: Path | None, as_json: bool
) -> None:
    require_bundle_path(out)
    from ladderboard.holdout import open_file  # noqa: PLC0415 - keeps --help fast

    with closing(open_file(file, key_file=key_file)) as guard:
        before = guard.closed
        if not yes and (labels or not before):
            end = None if before else "it answers no more questions or looks"
            confirm_closing(Path(file).name, end, out, labels=labels)
        if not before:
            guard.close_for_good()
        if not as_json:
            echo(f"{file} {'was closed before' if before else 'is closed for good'}.")
        head = _write_bundle(guard, file, out, labels=labels)
    if as_json:
        bundle = describe_bundle(out, head, labels=labels)
        echo_json({"file": file, "status": "closed", "before": before, "bundle": bundle})
    else:
        echo_bundle(out, head, labels=labels)


def _write_bundle(guard: "Holdout | Gate", file: str, out: Path, *, labels: bool) -> "ChainHead":
    """Write the bundle of a closed guard."""
    try:
        return guard.reveal(out, labels=labels)
    except LadderboardError as error:
        option = " --labels" if labels else ""
        raise StorageFailed(
            f"{error} {file} is closed, but its bundle was not written. Fix the problem, then "
            f"write it with: ladderboard guard export {file} --close --out {out}{option}"
        ) from error


def backup(
    file: File,
    to: Annotated[
        Path,
        typer.Argument(
            metavar="TO", help="The copy to write; an existing file is not overwritten."
        ),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Copy the file while it is in use.

    The copy holds the same secrets as the file, encrypted if the file is. To continue with it, use
    restore, with the number of questions that may have been answered since.
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
            f"{printable(to)} is a copy of {printable(file)}, just as secret. To continue with it:",
            f"  ladderboard guard restore {printable(to)} --charge N",
            "where N is the number of questions that may have been answered since now.",
        )


def restore(
    file: File,
    *,
    charge: Annotated[
        int,
        typer.Option(
            parser=parse_integer,
            help="The number of questions that may have been answered since the copy.",
        ),
    ],
    copy: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="COPY",
            help="Replace FILE by this copy; FILE is kept as FILE.replaced-N.",
        ),
    ] = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Continue with an older copy of a file; --from puts the copy in place first.

    The charged questions are subtracted from the budget and recorded. If in doubt, charge more: the
    certificate does not cover questions that are not counted.
    """
    from ladderboard.holdout import restore_file  # noqa: PLC0415 - keeps --help fast

    if copy is None or is_url(file) or Path(file).exists():
        require_guard_file(file)
    if copy is not None:
        require_guard_file(copy)
    with closing(restore_file(file, charge, copy=copy, key_file=key_file)) as guard:
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
        charged = "question was" if charge == 1 else "questions were"
        echo(f"{charge:,} {charged} charged; {remaining:,} left. The ledger records it.")
