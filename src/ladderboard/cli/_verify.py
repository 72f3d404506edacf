"""``ladderboard verify``: recompute a bundle, or find one's own answer in a ledger."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_json, echo_table, verification_progress, wrap_lines
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.losses import Loss
    from ladderboard.verify import VerificationResult

_MAX_ROWS = 20


def verify(
    bundle: Annotated[
        Path | None,
        typer.Argument(
            metavar="BUNDLE", help="What was opened at the close; or a ledger, an entry a line."
        ),
    ] = None,
    *,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="LEDGER", help="The public ledger of a board or guard, instead of a bundle."
        ),
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(metavar="HASH", help="A head kept from before; may be given several times."),
    ] = None,
    commitment: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="The commitment that was announced at the start."),
    ] = None,
    receipt: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="RECEIPT",
            help="A receipt, or the file in which submit keeps them; may be given several times.",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME", help="The loss, where it is the owner's own and you trust it."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
    as_json: AsJson = False,
) -> None:
    """Recompute everything in a bundle: the chain, the noise, every release.

    Where labels and submissions are in it, every risk and the final ranking too. No database is
    needed, and nothing that the bundle names is run. A head or a receipt kept from before excludes
    that the whole history was written anew. The first entry that differs is named.

    Exit codes: 0 nothing differs; 2 the command cannot be used; 4 something differs, or a file
    cannot be read.
    """
    from ladderboard.verify import read_receipts, verify_bundle  # noqa: PLC0415 - the help must not wait

    if (bundle is None) == (ledger is None):
        raise InvalidSetting(
            "Name one file to check: a bundle, or a ledger (--ledger); as in: ladderboard verify "
            "digits.bundle --head HASH"
        )
    path = bundle or ledger or Path()
    receipts = [read_receipt for file in receipt or () for read_receipt in read_receipts(file)]
    with verification_progress(quiet=quiet or as_json) as watch:
        found = verify_bundle(
            path,
            heads=head or (),
            receipts=receipts,
            commitment=commitment,
            loss=_load_loss(loss),
            on_progress=watch,
        )
    if as_json:
        echo_json({"file": str(path), **found.describe()})
    else:
        _echo_result(found)


def _load_loss(named: str | None) -> "Loss | None":
    if named is None:
        return None
    from ladderboard.losses import loss  # noqa: PLC0415 - only where it is wanted

    return loss(named)


def _echo_result(found: "VerificationResult") -> None:

    echo(str(found))
    for receipt in found.receipts:
        echo(*wrap_lines(_describe_receipt(receipt), indent="  "))
    for title, sentences in (
        ("What holds:", found.checked),
        ("What could not be checked:", found.unchecked),
    ):
        if sentences:
            echo(title)
        for sentence in sentences:
            echo(*wrap_lines(sentence, indent="    ", first="  - "))
    _echo_ranking(found)
    echo(f"commitment {found.commitment}", f"head       {found.head}")


def _echo_ranking(found: "VerificationResult") -> None:
    """Print who came where, for everybody to compare with what they were shown."""
    rows = found.ranking
    if not rows:
        return
    final = found.finals is not None
    echo("The final ranking:" if final else "The standings:")
    echo_table(
        ("rank", "team", "score" if final else "loss"),
        [
            ("baseline" if row.baseline else row.rank, row.team, row.number)
            for row in rows[:_MAX_ROWS]
        ],
        right=("rank", "score", "loss"),
    )
    if len(rows) > _MAX_ROWS:
        echo(f"These are the first {_MAX_ROWS}; --json has all.")


def _describe_receipt(entry: dict[str, Any]) -> str:
    """Return what an entry says, in a sentence; the numbers are losses."""
    when = datetime.fromtimestamp(entry["time"], UTC)
    value = "" if entry["value"] is None else f", the best loss was {entry['value']:g} after it"
    verdict = "it improved" if entry["improved"] else "it did not improve"
    return (
        f"The receipt opens entry {entry['entry']:,}: answered at {when:%Y-%m-%d %H:%M:%S} UTC, "
        f"{verdict}{value}."
    )
