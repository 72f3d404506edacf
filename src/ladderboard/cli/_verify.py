"""``ladderboard verify``: recompute a bundle, and find a receipt's entry in a ledger."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard._formatting import format_fixed, format_utc, shared_decimals
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_json, echo_table, verification_progress, wrap_lines
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.losses import Loss
    from ladderboard.verify import ShownMetric, VerificationResult

_MAX_ROWS = 20
_MAX_DIGITS = 10


def verify(
    bundle: Annotated[
        Path | None,
        typer.Argument(
            metavar="BUNDLE", help="The bundle written at the close; or a public ledger."
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
        typer.Option(metavar="HASH", help="A head noted earlier; may be given several times."),
    ] = None,
    commitment: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="The commitment published at the start."),
    ] = None,
    receipt: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="RECEIPT",
            help="A receipt, or the receipts file of submit; may be given several times.",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="The code of a custom loss. It is executed: give only code that you trust.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a bundle: recompute its hashes, noise and scores.

    If it holds labels and submissions, every risk and the final ranking, too. It needs no database,
    and runs no code that the bundle names. With a head or a receipt saved earlier it proves that
    the history was not rewritten as a whole. The first entry that differs is named.

    Exit codes: 0 nothing differs; 2 invalid arguments; 4 something differs, or a file cannot be
    read.
    """
    from ladderboard.verify import read_receipts, verify_bundle  # noqa: PLC0415 - keeps --help fast

    if (bundle is None) == (ledger is None):
        raise InvalidSetting(
            "Name one file to verify: a bundle, or a ledger (--ledger); as in: ladderboard verify "
            "digits.bundle --head HASH"
        )
    path = bundle or ledger or Path()
    receipts = [opening for file in receipt or () for opening in read_receipts(file)]
    with verification_progress(quiet=quiet or as_json) as on_progress:
        result = verify_bundle(
            path,
            heads=head or (),
            receipts=receipts,
            commitment=commitment,
            loss=_load_loss(loss),
            on_progress=on_progress,
        )
    if as_json:
        echo_json({"file": str(path), **result.describe()})
    else:
        _echo_result(result)


def _load_loss(name: str | None) -> "Loss | None":
    if name is None:
        return None
    from ladderboard.losses import loss  # noqa: PLC0415 - only if needed

    return loss(name)


def _echo_result(result: "VerificationResult") -> None:
    echo(str(result))
    for entry in result.receipts:
        echo(*wrap_lines(_describe_receipt(entry, result.metric), indent="  "))
    for title, sentences in (
        ("Verified:", result.checked),
        ("Not verified:", result.unchecked),
    ):
        if sentences:
            echo(title)
        for sentence in sentences:
            echo(*wrap_lines(sentence, indent="    ", first="  - "))
    _echo_ranking(result)
    echo(f"commitment {result.commitment}", f"head       {result.head}")


def _echo_ranking(result: "VerificationResult") -> None:
    """Print the ranking, to compare with the one on the board's page."""
    rows = result.ranking
    if not rows:
        return
    title = "The final ranking" if result.finals is not None else "The standings"
    title += ", by mean rank" if result.by_mean_rank else ""
    numbers = [row.display for row in rows if row.display is not None]
    metric = (result.ranked_by if numbers else None) or "loss"
    decimals = shared_decimals(numbers, _MAX_DIGITS)
    ties = Counter(row.rank for row in rows)
    echo(f"{title}:")
    echo_table(
        ("rank", "team", metric),
        [
            (
                "baseline" if row.baseline else f"{'=' * (ties[row.rank] > 1)}{row.rank or ''}",
                row.team,
                row.number if row.display is None else format_fixed(row.display, decimals),
            )
            for row in rows[:_MAX_ROWS]
        ],
        right=("rank", metric),
    )
    if len(rows) > _MAX_ROWS:
        echo(f"These are the first {_MAX_ROWS}; --json lists all.")


def _describe_receipt(entry: dict[str, Any], metric: "ShownMetric | None") -> str:
    """Return the entry that a receipt opens as a sentence, in the metric of the board or guard."""
    value = entry["value"]
    best = "none" if value is None else metric.text(value) if metric else f"loss {value:g}"
    result = "New best" if entry["improved"] else "No measurable improvement. Best so far"
    return (
        f"The receipt matches entry {entry['entry']:,}, answered at {format_utc(entry['time'])}. "
        f"{result}: {best}."
    )
