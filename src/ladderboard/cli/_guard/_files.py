"""Shared by the commands of guards and gates: opening and creating files, status, summaries."""

import csv
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from ladderboard._formatting import printable
from ladderboard.cli._options import require_new_file
from ladderboard.cli._output import echo, echo_err, echo_json, wrap_lines
from ladderboard.errors import InvalidSetting, InvalidState, LadderboardError

if TYPE_CHECKING:
    from ladderboard.adapters import Scores
    from ladderboard.files import DeclaredColumns, HoldoutTable
    from ladderboard.holdout import Gate, Holdout, OpenFile
    from ladderboard.losses import Metric

Kind = Literal["guard", "gate"]

File = Annotated[str, typer.Argument(metavar="FILE", help="The guard's or gate's file.")]

FileOrUrl = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="The guard's file; or a served guard, as http://127.0.0.1:8765 or unix:/path.",
    ),
]
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

KeyFile = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The key file, if labels are encrypted."),
]

NewFile = Annotated[str, typer.Argument(metavar="FILE", help="The file to create.")]
Labels = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="A table with a column label and, if needed, id, group and weight.",
    ),
]
LossName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="A loss, a metric, or module:function; zero_one if left out."
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="The names of columns in all files, as in id=image,prediction=target; label= where "
        "the labels have another name.",
    ),
]
Range = Annotated[
    str | None,
    typer.Option("--range", metavar="LOW,HIGH", help="The range of the numbers to predict."),
]
NewKeyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Encrypt the labels and everything secret with this key file; created if needed.",
    ),
]
Summary = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="Append the answer to a file, in Markdown."),
]

_BUDGETS: dict[Kind, str] = {"guard": "questions", "gate": "looks"}

_SQLITE_MAGIC = b"SQLite format 3\0"
_SCHEMES = ("http://", "https://", "unix:")

_MARKDOWN_SPECIAL = set("\\`*_{}[]<>#|~&!")  # in Markdown


def is_url(file: str) -> bool:
    """Return whether this is the address of a served guard rather than a file."""
    return file.startswith(_SCHEMES)


def require_guard_file(file: str, kind: Kind = "guard") -> None:
    """Raise if this is not a guard's or a gate's file; the message says what to do."""
    path = Path(file)
    if is_url(file):
        raise InvalidSetting("This command needs the guard's file, on the machine where it is.")
    if not path.exists():
        raise InvalidSetting(
            f"There is no file {path}. Create a {kind} with: ladderboard {kind} create {path} "
            f"--labels LABELS.csv --{_BUDGETS[kind]} K"
        )
    if path.is_dir():
        raise InvalidSetting(f"{path} is a directory; a {kind} is one file.")
    if any(os.path.lexists(f"{file}{suffix}") for suffix in ("-wal", "-journal")):
        # Nothing has opened the file yet, so it can be inspected without its log.
        from ladderboard.holdout import refuse_foreign_wal  # noqa: PLC0415 - rarely needed

        refuse_foreign_wal(path)


def open_guard(file: str, key_file: Path | None = None) -> "AbstractContextManager[Holdout | Any]":
    """Open the guard in a file, or connect to a served one; close it at the end of the block."""
    from ladderboard.holdout import Holdout  # noqa: PLC0415 - keeps --help fast

    return _open(Holdout, "guard", file, key_file)


def open_gate(file: str, key_file: Path | None = None) -> "AbstractContextManager[Gate | Any]":
    """Open the gate in a file, or connect to a served one; close it at the end of the block."""
    from ladderboard.holdout import Gate  # noqa: PLC0415 - keeps --help fast

    return _open(Gate, "gate", file, key_file)


def _open(opener: Any, kind: Kind, file: str, key_file: Path | None) -> Any:
    if is_url(file):
        if key_file is not None:
            raise InvalidSetting(f"The server of the {kind} holds the key; leave out --key-file.")
        return closing(opener.connect(file))  # finds the token by itself
    require_guard_file(file, kind)
    if _is_foreign(Path(file)):
        raise InvalidState(f"{file} is not a {kind}'s file. Is the order swapped?")
    return closing(opener.open(file, key_file=key_file))


def _is_foreign(path: Path) -> bool:
    """Return whether a file does not begin like a database."""
    try:
        with path.open("rb") as file:
            return not _SQLITE_MAGIC.startswith(file.read(len(_SQLITE_MAGIC)))
    except OSError:
        return False  # opening it says what is wrong


def echo_status(
    file: str,
    key_file: Path | None,
    kind: Kind,
    format_status: Callable[[str, Any, int | None], list[str]],
    *,
    check: bool,
    as_json: bool,
) -> None:
    """Print the status of a guard or a gate; with ``check``, recompute its answers first."""
    if check and is_url(file):
        raise InvalidSetting(f"--check needs the secret side, so it needs the {kind}'s file.")
    with (open_gate if kind == "gate" else open_guard)(file, key_file) as holdout:
        checked = holdout.verify_ledger() if check else None
        current = holdout.status()
    if as_json:
        echo_json({**current.describe(), **({} if checked is None else {"checked": checked})})
    else:
        echo(*format_status(file, current, checked))


class NewExamples(NamedTuple):
    """What a new guard or gate is made from."""

    table: "HoldoutTable"
    metric: "Metric"
    scores: "Scores | None"
    columns: "DeclaredColumns | None"


def read_new_examples(
    file: str,
    labels: Path | None,
    scores: "Scores | None",
    *,
    loss: str | None,
    classes: str | None,
    range_: str | None,
    kind: str | None = None,
    columns: str | None = None,
    **parameters: Any,
) -> NewExamples:
    """Read what the options of a ``create`` command name, for a file that does not exist yet."""
    from ladderboard.losses import uses_labels  # noqa: PLC0415 - keeps --help fast

    require_new_guard(file)
    name, declared = choose_loss(loss, labels, scores), parse_columns(columns)
    table = read_examples(labels, scores, kind, labelled=uses_labels(name), columns=declared)
    parameters |= {
        "classes": None if classes is None else parse_classes(classes, table.kind),
        "range": None if range_ is None else parse_range(range_),
    }
    given = {key: value for key, value in parameters.items() if value is not None}
    metric = make_metric(name, given)
    if not metric.loss.at_close_only:  # answers will hide whether a function is broken
        metric.loss.check_on_labels(table.labels)
    return NewExamples(table, metric, scores, declared)


def parse_columns(text: str | None) -> "DeclaredColumns | None":
    """Read the names of columns, as in id=image,prediction=target.

    >>> parse_columns("id=user,id=day,prediction=y").describe()
    {'id': ['user', 'day'], 'prediction': ['y']}
    """
    from ladderboard.files import DeclaredColumns  # noqa: PLC0415 - keeps --help fast

    if text is None:
        return None
    (cells,) = csv.reader([text], skipinitialspace=True)
    names: dict[str, list[str]] = {}
    for cell in cells:
        part, equals, name = cell.partition("=")
        if not equals:
            raise InvalidSetting(
                f"--columns names columns as in id=image,prediction=target; got {text!r:.80}."
            )
        names.setdefault(part.strip(), []).append(name.strip())
    return DeclaredColumns.read(names)


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
    labels: Path | None,
    scores: "Scores | None",
    kind: str | None,
    *,
    labelled: bool,
    columns: "DeclaredColumns | None" = None,
) -> "HoldoutTable":
    """Return the owner's table: from a file of labels, or with the ids of a log."""
    from ladderboard.files import Limits, read_holdout  # noqa: PLC0415 - keeps --help fast

    if not labelled and kind is not None:
        raise InvalidSetting("Scores have no labels; leave out --kind.")
    if labels is not None and labels.exists() and not (labels.is_file() or labels.is_dir()):
        raise InvalidSetting(
            f"--labels {printable(labels)} is not a regular file; write the labels to a file first."
        )
    source = labels if scores is None else {"id": list(scores.ids)}
    limits = Limits(bytes=2**40)
    return read_holdout(
        source,
        kind=kind,  # type: ignore[arg-type]  # read_holdout checks it
        limits=limits,
        labelled=labelled,
        columns=columns,
    )


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
    from ladderboard.cli._guard._wording import format_values  # noqa: PLC0415 - keeps ask fast
    from ladderboard.holdout import UNDECLARED_CLASSES  # noqa: PLC0415 - same

    loss = guard.loss
    if loss.allowed is not None:
        if declared:
            return []
        text = (
            f"Classes, taken from the labels: {format_values(loss.allowed)}. They are public; any "
            "other prediction is refused. If there are more, create it again with --classes A,B,C."
        )
    elif loss.accepts_any:
        text = f"No classes are declared. {UNDECLARED_CLASSES}"
        if loss.infers_classes and not declared:
            text += " Some classes have fewer than five labels; declare all with --classes A,B,C."
    else:
        return []
    return wrap_lines(text, indent="  ", first="")


def describe_secrecy(file: str, key_file: Path | None, secrets: str) -> str:
    """Return who can read the secrets of a new guard or gate."""
    if key_file is not None:
        return (
            f"Encrypted with {key_file}; without it nothing can be recovered. Store a copy "
            "elsewhere."
        )
    return f"Every user who can read {file} can read the {secrets}; --key-file would encrypt them."


def parse_range(text: str) -> tuple[float, float]:
    """Read a range of numbers, as in 0,100."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InvalidSetting(
            f"A range is two numbers separated by a comma, as in 0,100; got {text!r:.80}."
        ) from None
    return low, high


def make_metric(name: str, params: dict[str, Any]) -> "Metric":
    """Make a metric, or a loss by its name; errors name the options of the command line."""
    from ladderboard.losses import metric  # noqa: PLC0415 - keeps --help fast

    try:
        chosen = metric(name, **params)
        chosen.loss.check_settings()
    except InvalidSetting as error:
        for param in params:
            if f"unexpected keyword argument {param!r}" in str(error):
                raise InvalidSetting(f"The loss {name} takes no --{param}.") from None
        if "range=" in str(error):
            raise InvalidSetting(
                f"{name} needs the range of the labels, as in --range 0,100."
            ) from None
        raise
    return chosen


def open_summary(
    path: Path | None, title: str, list_rows: Callable[[Any], list[tuple[str, str]]]
) -> AbstractContextManager[Callable[[Any], None]]:
    """Open a summary file before asking, so that a wrong path does not cost a question.

    Yields a function that adds an answer, with a table of ``list_rows``. It, or the refusal, is
    appended at the end. If that fails, the answer still counts, and stderr says that the summary
    was not written. Without a path nothing is written.
    """
    return nullcontext(_discard) if path is None else _append_summary(path, title, list_rows)


def _discard(_: Any) -> None:
    """Write no summary."""


@contextmanager
def _append_summary(
    path: Path, title: str, list_rows: Callable[[Any], list[tuple[str, str]]]
) -> Iterator[Callable[[Any], None]]:
    try:
        file = path.open("a", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InvalidSetting(
            f"The summary {path} cannot be written: {error.strerror}. No question was asked."
        ) from None
    lines: list[str] = []
    try:
        yield lambda answer: lines.extend(_summarise(title, answer.reason, list_rows(answer)))
    except LadderboardError as error:
        lines.extend(_summarise_refusal(error, title))
        raise
    finally:
        try:
            with file:
                file.write("".join(f"{line}\n" for line in lines))
        except OSError as error:
            echo_err(f"ladderboard: The summary {path} was not written: {error.strerror}.")


def _summarise(title: str, reason: str, rows: list[tuple[str, str]]) -> list[str]:
    return [
        f"### {title}",
        "",
        escape_markdown(reason),
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows),
        "",
    ]


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
