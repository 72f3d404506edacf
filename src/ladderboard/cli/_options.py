"""Options and arguments that several commands share, and how they are read.

A passphrase comes from a file, the environment or a prompt, never from the command line: that is
seen by everybody on the machine, and kept in a shell's history.
"""

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.adapters import Scores

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="One of csv, tsv, parquet, arrow, jsonl, npy; found out if left out.",
    ),
]


def predictions_source(predictions: str, verb: str) -> Any:
    """Return what to read: a path, or the pipe; ``verb`` is what stands behind one."""
    if predictions != "-":
        return Path(predictions)
    if sys.stdin is None or sys.stdin.isatty():
        raise InvalidSetting(
            f"With - predictions come through a pipe, as in: python predict.py | ladderboard {verb}"
        )
    return sys.stdin.buffer


def require_new_file(path: Path) -> None:
    """Refuse a name for a new file that is taken, or beside which another file left something."""
    if os.path.lexists(path):
        raise InvalidSetting(f"{path} is there already; choose another name. Nothing was changed.")
    for end in ("-wal", "-shm", "-journal"):  # SQLite would read them into the new file
        if os.path.lexists(f"{path}{end}"):
            raise InvalidSetting(f"{path}{end} is left from another file; move it away first.")


def parse_integer(text: str) -> int:
    """Read a whole number, also written as 1e4, 10_000 or, as plans print it, 10,000.

    >>> parse_integer("1e4"), parse_integer("10_000"), parse_integer("10,000")
    (10000, 10000, 10000)
    """
    try:
        return int(text)
    except ValueError:
        pass
    if re.fullmatch(r"\d{1,3}(,\d{3})+", text):
        return int(text.replace(",", ""))
    try:
        read = float(text.replace("_", ""))
        if read.is_integer():
            return int(read)
    except ValueError:
        pass
    raise typer.BadParameter(f"A whole number is wanted, as in 1000 or 1e3; got {text!r}.")


def parse_integers(text: str | None) -> list[int] | None:
    """Read whole numbers with commas between.

    >>> parse_integers("1000,1e4")
    [1000, 10000]
    """
    return None if text is None else [parse_integer(part) for part in text.split(",")]


PASSPHRASE_VARIABLE = "LADDERBOARD_PASSPHRASE"  # noqa: S105 - where it is found
_MAX_PASSPHRASE_BYTES = 4096

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="A file with the passphrase on its first line; LADDERBOARD_PASSPHRASE, or a question, "
        "if left out.",
    ),
]

PublicKey = Annotated[  # in place of one
    str | None,
    typer.Option(
        metavar="KEY", help="Encrypt to a public key, or one in a file; see board keygen."
    ),
]


def read_passphrase(file: Path | None = None, *, new: bool = False) -> str:
    """Return the first line of a file, what the environment says, or what a person types.

    A ``new`` one is asked for twice.
    """
    if file is not None:
        return _read_passphrase_file(file)
    if PASSPHRASE_VARIABLE in os.environ:
        return os.environ[PASSPHRASE_VARIABLE]
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidSetting(
            "A passphrase is needed, and nobody is here to type it: put it into a file and name "
            f"that with --passphrase-file, or into {PASSPHRASE_VARIABLE}."
        )
    typed: str = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=new, err=True)
    return typed


def _read_passphrase_file(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            held = opened.read(_MAX_PASSPHRASE_BYTES + 1)
    except OSError as error:
        raise InvalidSetting(f"{file} cannot be read: {error.strerror}.") from None
    try:
        words = held.partition(b"\n")[0].removesuffix(b"\r").decode()
    except ValueError:
        words = ""
    if not words or len(held) > _MAX_PASSPHRASE_BYTES:
        raise InvalidSetting(f"{file} must hold a passphrase on its first line, and be short.")
    return words


InspectLog = Annotated[
    Path | None,
    typer.Option("--inspect", metavar="LOG", help="Scores from a log of Inspect AI."),
]
LmEvalSamples = Annotated[
    Path | None,
    typer.Option(
        "--lm-eval",
        metavar="FILE",
        help="Scores from a samples file of lm-evaluation-harness.",
    ),
]
MetricOfLog = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Which score of the log: a scorer[,reducer] of Inspect, if there are several; a "
        "metric[,filter] of lm-evaluation-harness, acc if left out.",
    ),
]


def read_scores(
    inspect: Path | None, lm_eval: Path | None, metric: str | None = None
) -> "Scores | None":
    """Return the scores of the log that was named, None where none was."""
    if inspect is not None and lm_eval is not None:
        raise InvalidSetting("Give one log, with --inspect or with --lm-eval.")
    name, comma, which = (metric or "").partition(",")
    if metric is not None and not (name and bool(which) is bool(comma)):
        raise InvalidSetting(f"--metric is a name, or two as in acc,none; got {metric!r:.80}.")
    if inspect is not None:
        from ladderboard.adapters.inspect import read_log  # noqa: PLC0415 - only where wanted

        return read_log(inspect, metric=name or None, reducer=which or None)
    if lm_eval is not None:
        from ladderboard.adapters.lm_eval import read_samples  # noqa: PLC0415 - same

        return read_samples(lm_eval, metric=name or "acc", filter=which or None)
    if metric is not None:
        raise InvalidSetting("--metric is of a log; name one with --inspect or --lm-eval.")
    return None
