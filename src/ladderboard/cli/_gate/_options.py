"""Shared by the commands of gates: options, and opening a gate."""

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard.cli._holdout_files import is_url, require_guard_file
from ladderboard.cli._options import predictions_source
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.adapters import Scores
    from ladderboard.holdout import Gate

GateFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="The gate's file; or a served gate, as http://127.0.0.1:8765 or unix:/path.",
    ),
]
Predictions = Annotated[
    str, typer.Argument(metavar="PREDICTIONS", help="A file of predictions; - reads a pipe.")
]


@contextmanager
def open_gate(file: str, key_file: Path | None = None) -> "Iterator[Gate | Any]":
    """Open the gate in a file, or connect to a served one, and close it at the end."""
    from ladderboard.holdout import Gate  # noqa: PLC0415 - keeps --help fast

    if is_url(file):
        if key_file is not None:
            raise InvalidSetting("A served gate has its key itself; leave out --key-file.")
        with closing(Gate.connect(file)) as remote:
            yield remote
        return
    if not Path(file).exists():
        raise InvalidSetting(
            f"There is no file {file}. Create a gate with: ladderboard gate create {file} "
            "--labels LABELS.csv --looks K"
        )
    require_guard_file(file)
    with closing(Gate.open(file, key_file=key_file)) as gate:
        yield gate


def find_candidate(
    gate: Any, predictions: str, scores: "Scores | None", file_format: str | None, command: str
) -> Any:
    """Return predictions or scores in the form that a gate takes."""
    if scores is None:
        if not predictions:
            raise InvalidSetting(
                "Give predictions: a file, - for a pipe, or results with --junit, --results, "
                "--inspect or --lm-eval."
            )
        return predictions_source(predictions, f"{command} -")
    if predictions or file_format:
        raise InvalidSetting(
            "A log has scores and a format of its own; leave out predictions and --format."
        )
    if gate.takes != "scores":
        raise InvalidSetting(
            "This gate takes predictions, not scores from a log. Create a gate for scores from a "
            "log: ladderboard gate create NEW.db --junit FILE --looks K"
        )
    return scores.table
