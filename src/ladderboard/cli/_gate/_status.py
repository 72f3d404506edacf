"""``ladderboard gate status``: looks, incumbent and verdicts."""

from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard._formatting import format_count
from ladderboard.cli._gate._options import GateFile, open_gate
from ladderboard.cli._holdout_files import KeyFile, is_url
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_json
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.holdout import GateStatus

_SHOWN_LOOKS = 10


def status(
    file: GateFile,
    *,
    check: Annotated[
        bool,
        typer.Option("--check", help="First recompute every verdict from the secret side."),
    ] = False,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Show the public state: looks, incumbent, the last verdicts, and the price of the next look.

    The whole chain of the ledger is checked.
    """
    if check and is_url(file):
        raise InvalidSetting("--check needs the secret side, so it needs the gate's file.")
    with open_gate(file, key_file) as gate:
        checked = gate.verify_ledger() if check else None
        current = gate.status()
    if as_json:
        echo_json({**current.describe(), **({} if checked is None else {"checked": checked})})
        return
    echo(*_format_status(file, current))
    if checked is not None:
        echo("", f"Checked: {format_count(checked, 'answer')} recomputed from the secret side.")


def _format_status(file: str, current: "GateStatus") -> list[str]:
    from ladderboard.holdout import OUTCOMES  # noqa: PLC0415 - keeps --help fast

    used = f"{len(current.history):,} looks taken, {current.remaining:,} of {current.looks:,} left"
    counts = [
        f"{current.count(outcome):,} {outcome.replace('_', ' ')}"
        for outcome in OUTCOMES
        if outcome != "worse" or current.worse
    ]
    incumbent = f"number {current.incumbent:,}" if current.incumbent else "none yet; promote one"
    lines = [
        f"{file}: {current.n:,} examples; margin {current.margin:g}, beta {current.beta:g}",
        f"{used}{'; closed' if current.closed else ''}",
        f"Incumbent: {incumbent}",
        f"Verdicts: {', '.join(counts)}",
    ]
    if current.next_nats is not None:
        lines.append(f"Price of the next look: {current.next_nats:.1f} nats")
    for record in current.history[-_SHOWN_LOOKS:]:
        differ = "" if record.differing is None else f", {record.differing:,} differ"
        needed = "" if record.needed is None else f", {record.needed} net wins needed"
        lines.append(
            f"  look {record.look:>4,}: {record.outcome.replace('_', ' ')} (incumbent "
            f"{record.incumbent:,}, margin {record.margin:g}{differ}{needed})"
        )
    return lines
