"""Shared by the commands of guards and gates: their files, creating them, and summaries."""

import csv
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard._formatting import printable
from ladderboard.cli._options import require_new_file
from ladderboard.cli._output import echo_err, wrap_lines
from ladderboard.errors import InvalidSetting, LadderboardError

if TYPE_CHECKING:
    from ladderboard.adapters import Scores
    from ladderboard.files import HoldoutTable
    from ladderboard.holdout import OpenFile

File = Annotated[str, typer.Argument(metavar="FILE", help="The guard's file.")]

KeyFile = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The key file, if the secret side is encrypted."),
]

_SCHEMES = ("http://", "https://", "unix:")

_MARKDOWN_SPECIAL = set("\\`*_{}[]<>#|~&!")  # in Markdown


def is_url(file: str) -> bool:
    """Return whether this is the address of a served guard rather than a file."""
    return file.startswith(_SCHEMES)


def require_guard_file(file: str) -> None:
    """Raise if this is not a guard's file; the message says what to do."""
    path = Path(file)
    if is_url(file):
        raise InvalidSetting("This command needs the guard's file, on the machine where it is.")
    if not path.exists():
        raise InvalidSetting(
            f"There is no file {path}. Create a guard with: ladderboard guard create {path} "
            "--labels LABELS.csv --questions K"
        )
    if path.is_dir():
        raise InvalidSetting(f"{path} is a directory; a guard is one file.")
    if any(os.path.lexists(f"{file}{suffix}") for suffix in ("-wal", "-journal")):
        # Nothing has opened the file yet, so it can be inspected without its log.
        from ladderboard.holdout import refuse_foreign_wal  # noqa: PLC0415 - rarely needed

        refuse_foreign_wal(path)


def require_new_guard(file: str) -> None:
    """Refuse a path at which no guard or gate can be created."""
    if is_url(file):
        raise InvalidSetting(
            "A guard is created as a file; serve it afterwards with ladderboard guard serve."
        )
    require_new_file(Path(file))
    mark = Path(f"{file}.mark")
    if mark.exists():
        raise InvalidSetting(
            f"{mark} exists already: it belongs to an earlier guard. If that guard is deleted for "
            "good, remove its mark; otherwise choose another name."
        )


def choose_loss(loss: str | None, labels: Path | None, scores: "Scores | None") -> str:
    """Return the name of the loss for labels or for a log; raise without exactly one of them."""
    if (labels is None) is (scores is None):
        raise InvalidSetting(
            "A guard needs labels, or ids from a log: give one of --labels LABELS.csv, "
            "--inspect LOG and --lm-eval FILE."
        )
    if scores is None:
        return "zero_one" if loss is None else loss
    from ladderboard.losses import uses_labels  # noqa: PLC0415 - keeps --help fast

    if loss is not None and uses_labels(loss):
        raise InvalidSetting(
            f"A log holds scores, so the loss must be score; got --loss {loss!r:.80}."
        )
    return "score"


def read_examples(
    labels: Path | None, scores: "Scores | None", kind: str | None, *, labelled: bool
) -> "HoldoutTable":
    """Return the owner's table: from a file of labels, or with the ids of a log."""
    from ladderboard.files import Limits, read_holdout  # noqa: PLC0415 - keeps --help fast

    if not labelled and kind is not None:
        raise InvalidSetting("Scores have no labels; leave out --kind.")
    source = labels if scores is None else {"id": list(scores.ids)}
    limits = Limits(bytes=2**40)
    return read_holdout(source, kind=kind, limits=limits, labelled=labelled)  # type: ignore[arg-type]


def describe_partial_log(scores: "Scores | None") -> list[str]:
    """Return a warning about a log that does not cover its dataset."""
    if scores is None or scores.dataset_size == len(scores):
        return []
    if scores.dataset_size is None:
        text = (
            f"Warning: the log may be incomplete. The guard has its {len(scores):,} examples, and "
            "will refuse a log with more. For lm-evaluation-harness, keep the run's "
            "results_DATE.json beside the samples."
        )
    else:
        text = (
            f"The log has {len(scores):,} of the {scores.dataset_size:,} examples of its dataset. "
            "The guard has only these, and will refuse a log with more."
        )
    return wrap_lines(text, indent="  ", first="")


def parse_classes(text: str, kind: str) -> Any:
    """Read classes, as numbers or text like the labels; names with commas are quoted."""
    (row,) = csv.reader([text], skipinitialspace=True)
    if row == ["any"]:
        return "any"
    if kind == "text":
        return row
    try:
        return [int(cell) if cell.strip().lstrip("+-").isdigit() else float(cell) for cell in row]
    except ValueError:
        raise InvalidSetting(
            f"The labels are numbers, so classes must be numbers; got {text!r:.80}. If they are "
            "names, give --kind text."
        ) from None


def describe_classes(guard: "OpenFile", *, declared: bool) -> list[str]:
    """Return a note on where the classes come from, or what it means to declare none."""
    from ladderboard.holdout import UNDECLARED_CLASSES  # noqa: PLC0415 - same

    loss = guard.loss
    if loss.allowed is not None:
        if declared:
            return []
        text = (
            "The classes were taken from the labels, and are public; any other prediction is "
            "refused. If there are more, create the file again with --classes A,B,C."
        )
    elif loss.accepts_any:
        text = f"No classes are declared. {UNDECLARED_CLASSES}"
        if loss.infers_classes and not declared:
            text += " Some classes have fewer than five labels; declare all with --classes A,B,C."
    else:
        return []
    return wrap_lines(text, indent="  ", first="")


def parse_range(text: str) -> tuple[float, float]:
    """Read a range of numbers, as in 0,100."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InvalidSetting(
            f"A range is two numbers separated by a comma, as in 0,100; got {text!r:.80}."
        ) from None
    return low, high


def make_loss(name: str, params: dict[str, Any]) -> Any:
    """Make a loss; errors name the options of the command line."""
    from ladderboard.losses import loss  # noqa: PLC0415 - keeps --help fast

    try:
        return loss(name, **params)
    except InvalidSetting as error:
        for param in params:
            if f"unexpected keyword argument {param!r}" in str(error):
                raise InvalidSetting(f"The loss {name} takes no --{param}.") from None
        if "range=" in str(error):
            raise InvalidSetting(
                f"The loss {name} needs the range of the labels, as in --range 0,100."
            ) from None
        raise


def no_summary() -> Any:
    """Return a context whose function for answers does nothing."""
    return nullcontext(_discard)


def _discard(_: Any) -> None:
    """Write no summary."""


@contextmanager
def append_summary(
    path: Path, title: str, summarise: Callable[[Any], list[str]]
) -> Iterator[Callable[[Any], None]]:
    """Open a summary file before asking, so that a wrong path does not cost a question.

    Yields a function that adds an answer. It, or the refusal, is appended at the end. If that
    fails, the answer still counts, and stderr says that the summary was not written.
    """
    try:
        file = path.open("a", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InvalidSetting(
            f"The summary {path} cannot be written: {error.strerror}. No question was asked."
        ) from None
    lines: list[str] = []
    try:
        yield lambda answer: lines.extend(summarise(answer))
    except LadderboardError as error:
        lines.extend(_summarise_refusal(error, title))
        raise
    finally:
        try:
            with file:
                file.write("".join(f"{line}\n" for line in lines))
        except OSError as error:
            echo_err(f"ladderboard: The summary {path} was not written: {error.strerror}.")


def _summarise_refusal(error: LadderboardError, title: str) -> list[str]:
    lines = [escape_markdown(line.removeprefix("- ")) for line in str(error).splitlines()]
    return [
        f"### {title}",
        "",
        f"**Not answered.** {lines[0]}",
        "",
        *(f"- {line}" for line in lines[1:]),
        *([""] if lines[1:] else []),
    ]


def escape_markdown(text: str) -> str:
    """Return a text with the special characters of Markdown escaped."""
    return "".join(f"\\{char}" if char in _MARKDOWN_SPECIAL else char for char in printable(text))
