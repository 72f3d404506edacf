"""Options and arguments that several commands share, and how they are read.

A passphrase comes from a file, the environment or a prompt, never from the command line, which
every user of the machine can see and which shells save in their history.
"""

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard._atomic_file import SQLITE_SUFFIXES
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.adapters import Scores

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="csv, tsv, parquet, arrow, jsonl or npy; detected if left out.",
    ),
]


def predictions_source(predictions: str, example: str) -> Any:
    """Return where to read predictions: a path, or stdin for ``-``.

    ``example`` is the command of the hint for a missing pipe.
    """
    if predictions != "-":
        return Path(predictions)
    if sys.stdin is None or sys.stdin.isatty():
        raise InvalidSetting(
            f"- reads predictions from a pipe, as in: python predict.py | ladderboard {example}"
        )
    return sys.stdin.buffer


def require_new_file(path: Path) -> None:
    """Raise if a new file's name is taken, or if SQLite files of another one are beside it."""
    if os.path.lexists(path):
        raise InvalidSetting(f"{path} exists already; choose another name. Nothing was changed.")
    for suffix in SQLITE_SUFFIXES:  # SQLite would read them into the new file
        if os.path.lexists(f"{path}{suffix}"):
            raise InvalidSetting(f"{path}{suffix} belongs to another file; move it away first.")


def parse_integer(text: str) -> int:
    """Read an integer, also written as 1e4, 10_000 or, as plans print it, 10,000.

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
        number = float(text.replace("_", ""))
        if number.is_integer():
            return int(number)
    except ValueError:
        pass
    raise typer.BadParameter(f"Expected a whole number, as in 1000 or 1e3; got {text!r}.")


def parse_integers(text: str | None) -> list[int] | None:
    """Read integers separated by commas; None stays None.

    >>> parse_integers("1000,1e4")
    [1000, 10000]
    """
    return None if text is None else [parse_integer(part) for part in text.split(",")]


PASSPHRASE_VARIABLE = "LADDERBOARD_PASSPHRASE"  # noqa: S105 - the variable's name
_MAX_PASSPHRASE_BYTES = 4096

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="A file with the passphrase on its first line; LADDERBOARD_PASSPHRASE, or a "
        "prompt, if left out.",
    ),
]

PublicKey = Annotated[  # instead of a passphrase
    str | None,
    typer.Option(
        metavar="KEY", help="Encrypt to this public key, or the one in this file; see board keygen."
    ),
]


def read_passphrase(file: Path | None = None, *, new: bool = False) -> str:
    """Return the passphrase from a file's first line, the environment or a prompt.

    A ``new`` one is prompted for twice.
    """
    if file is not None:
        return _read_passphrase_file(file)
    if PASSPHRASE_VARIABLE in os.environ:
        return os.environ[PASSPHRASE_VARIABLE]
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidSetting(
            "A passphrase is needed, and stdin is not a terminal: write it to a file and name "
            f"that with --passphrase-file, or set {PASSPHRASE_VARIABLE}."
        )
    typed: str = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=new, err=True)
    return typed


def read_passphrase_of(dumps: list[Path], file: Path | None) -> str:
    """Return the passphrase of dumps; raise if they are encrypted to a public key."""
    from ladderboard.ledger import is_encrypted_to_key  # noqa: PLC0415 - keeps --help fast

    if any(is_encrypted_to_key(dump) for dump in dumps):
        raise InvalidSetting(
            "It is encrypted to a public key, not with a passphrase: give --secret-key PATH, the "
            "file that board keygen made."
        )
    return read_passphrase(file)


def _read_passphrase_file(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(_MAX_PASSPHRASE_BYTES + 1)
    except OSError as error:
        raise InvalidSetting(f"{file} cannot be read: {error.strerror}.") from None
    try:
        passphrase = content.partition(b"\n")[0].removesuffix(b"\r").decode()
    except ValueError:
        passphrase = ""
    if not passphrase or len(content) > _MAX_PASSPHRASE_BYTES:
        raise InvalidSetting(
            f"{file} must hold a passphrase on its first line, and at most "
            f"{_MAX_PASSPHRASE_BYTES:,} bytes."
        )
    return passphrase


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


JunitFile = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Pass or fail from a JUnit XML file."),
]
ResultsFile = Annotated[
    Path | None,
    typer.Option(
        "--results", metavar="FILE", help='Pass or fail from JSON, as in {"case-1": true}.'
    ),
]


def read_scores(
    inspect: Path | None,
    lm_eval: Path | None,
    metric: str | None = None,
    *,
    junit: Path | None = None,
    results: Path | None = None,
) -> "Scores | None":
    """Return the scores from the log given by an option; None without one."""
    if sum(log is not None for log in (inspect, lm_eval, junit, results)) > 1:
        raise InvalidSetting("Give one log, with one option.")
    if junit is not None or results is not None:
        from ladderboard.adapters.results import (  # noqa: PLC0415 - only if needed
            read_junit,
            read_results,
        )

        if metric is not None:
            raise InvalidSetting("--metric needs a log; give one with --inspect or --lm-eval.")
        return read_results(results) if results is not None else read_junit(junit or Path())
    name, comma, which = (metric or "").partition(",")
    if metric is not None and not (name and bool(which) is bool(comma)):
        raise InvalidSetting(f"--metric is a name, or two as in acc,none; got {metric!r:.80}.")
    if inspect is not None:
        from ladderboard.adapters.inspect import read_log  # noqa: PLC0415 - only if needed

        return read_log(inspect, metric=name or None, reducer=which or None)
    if lm_eval is not None:
        from ladderboard.adapters.lm_eval import read_samples  # noqa: PLC0415 - same

        return read_samples(lm_eval, metric=name or "acc", filter=which or None)
    if metric is not None:
        raise InvalidSetting("--metric needs a log; give one with --inspect or --lm-eval.")
    return None
