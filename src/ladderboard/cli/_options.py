"""Options that are the same wherever they occur, and predictions from a file or a pipe."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ladderboard.errors import InvalidSetting

__all__ = ["AsJson", "Format", "source_of"]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="One of csv, tsv, parquet, arrow, jsonl, npy; found out if left out.",
    ),
]


def source_of(predictions: str, verb: str) -> Any:
    """Return what to read: a path, or the pipe; ``verb`` is what stands behind one."""
    if predictions != "-":
        return Path(predictions)
    if sys.stdin is None or sys.stdin.isatty():
        raise InvalidSetting(
            f"With - predictions come through a pipe, as in: python predict.py | ladderboard {verb}"
        )
    return sys.stdin.buffer
