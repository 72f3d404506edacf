"""``ladderboard guard create``: labels, a loss, a mechanism and a budget in one file."""

import csv
import json
from contextlib import closing
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard._formatting import format_count, printable
from ladderboard.cli._guard._options import is_url
from ladderboard.cli._options import (
    AsJson,
    InspectLog,
    LmEvalSamples,
    MetricOfLog,
    parse_integer,
    read_scores,
    require_new_file,
)
from ladderboard.cli._output import echo, echo_json, wrap_lines
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.adapters import Scores
    from ladderboard.bounds import Certificate
    from ladderboard.files import HoldoutTable
    from ladderboard.holdout import Holdout

_PUBLIC_WITH_LABELS = (
    "the number of examples, the loss with its classes or range, the mechanism, the budget, "
    "whether labels are numbers or text, and every release with its time"
)

_PUBLIC_WITH_SCORES = (
    "the ids and the number of examples, the loss, the mechanism, the budget, and every release "
    "with its time"
)

_SCORE_LOSSES = ("score", "shortfall")  # of these there are no labels

_HINT_ONE_LADDER = (
    "More labels, or fewer questions, would promise something; ladderboard plan tells how many."
)
_HINT_SEVERAL_LADDERS = "Fewer ladders, more labels or fewer questions would promise something."


def create(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to make.")],
    *,
    questions: Annotated[
        int, typer.Option(parser=parse_integer, help="The budget: how many questions are allowed.")
    ],
    ladders: Annotated[
        int | None,
        typer.Option(
            parser=parse_integer,
            help="How many ladders there may be: one for each study, run or team that need not "
            "beat the best of another; 1 if left out. More of them promise less.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="A table with a column label and, as wanted, id, group and weight.",
        ),
    ] = None,
    inspect: InspectLog = None,
    lm_eval: LmEvalSamples = None,
    metric: MetricOfLog = None,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A loss, a metric, or module:function; zero_one if left out."
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="The classes of the loss; they are public. For zero_one they are taken from the "
            "labels if left out; any accepts every prediction.",
        ),
    ] = None,
    range_: Annotated[
        str | None,
        typer.Option("--range", metavar="LOW,HIGH", help="Where numbers to be predicted lie."),
    ] = None,
    k: Annotated[
        int | None, typer.Option(parser=parse_integer, help="How many guesses top_k looks at.")
    ] = None,
    clip: Annotated[
        float | None, typer.Option(help="The least probability the log loss counts.")
    ] = None,
    quantile: Annotated[
        float | None, typer.Option(help="The quantile of the pinball loss.")
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What answers: a name, or a name with settings in JSON; the Shaky Ladder, "
            "calibrated for this size, if left out.",
        ),
    ] = None,
    beta: Annotated[
        float, typer.Option(help="The probability with which certificates may be false.")
    ] = 0.05,
    kind: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the labels: number or text; found out if left out."),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Encrypt the labels and all that is secret; made if it is not there.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a file that holds labels and will answer so many questions about them.

    From the log of an evaluation, in place of labels, it takes the ids of the examples; it is then
    asked with scores from such logs. The scores of this log are not asked.

    Nothing can be changed later: what decides the answers is committed to in the ledger's first
    entry. How many labels and questions go together: ladderboard plan.
    """
    from ladderboard.holdout import Holdout  # noqa: PLC0415 - keeps --help fast

    _require_new_guard(file)
    scores = read_scores(inspect, lm_eval, metric)
    name = _choose_loss(loss, labels, scores)
    table = _read_examples(labels, scores, kind, labelled=name not in _SCORE_LOSSES)
    given = {
        "classes": None if classes is None else _parse_classes(classes, table.kind),
        "range": None if range_ is None else _parse_range(range_),
        "k": k,
        "clip": clip,
        "quantile": quantile,
    }
    made = Holdout.create(
        file,
        table,
        questions=questions,
        ladders=1 if ladders is None else ladders,
        loss=_make_loss(name, {name: each for name, each in given.items() if each is not None}),
        mechanism=None if mechanism is None else _make_mechanism(mechanism),
        beta=beta,
        key_file=key_file,
    )
    with closing(made) as guard:
        bound = _initial_certificate(guard)
        if as_json:
            told = _describe_for_json(file, guard, bound, encrypted=key_file is not None)
            echo_json({**told, "unused": [] if table.split is None else ["split"]})
        else:
            grouped = table.group is not None
            option = None if scores is None else "--lm-eval FILE" if lm_eval else "--inspect LOG"
            lines = _describe_guard(file, guard, bound, key_file, grouped=grouped, option=option)
            lines[-2:-2] = _describe_classes(guard, declared=classes is not None)
            echo(*_describe_partial_log(scores), *_describe_unused_split(table), *lines)
        _warn_if_too_coarse(guard)


def _warn_if_too_coarse(guard: "Holdout") -> None:
    """Tell the owner, on stderr, that the answers are too coarse to show a better model."""
    from ladderboard.holdout import coarseness  # noqa: PLC0415 - same

    gap, coarse = guard.constant_risk(), coarseness(guard.meter.mechanism)
    if gap is not None and 0 < gap <= coarse:
        said = (
            f"Warning: the answers are too coarse for these labels. A constant prediction has a "
            f"loss of {gap:.2g}, and a gain below {coarse:.2g} may go unseen: even a perfect model "
            "may look no better. Use more examples, declare a narrower range, or give --mechanism "
            "a finer step and grid. (This tells of the labels; it is for you alone.)"
        )
        typer.echo("\n".join(wrap_lines(said, indent="  ", first="")), err=True)


def _require_new_guard(file: str) -> None:
    if is_url(file):
        raise InvalidSetting("A guard is made as a file; `ladderboard guard serve` serves it then.")
    require_new_file(Path(file))
    mark = Path(f"{file}.mark")
    if mark.exists():
        raise InvalidSetting(
            f"{mark} is there already: it belongs to a guard that was here. If that one is gone "
            "for good, remove its mark; otherwise choose another name."
        )


def _choose_loss(loss: str | None, labels: Path | None, scores: "Scores | None") -> str:
    """Return the loss that goes with labels, or with a log; refuse none of them, and both."""
    if (labels is None) is (scores is None):
        raise InvalidSetting(
            "A guard is made of labels or of the ids in a log; give one of --labels LABELS.csv, "
            "--inspect LOG and --lm-eval FILE."
        )
    if scores is None:
        return "zero_one" if loss is None else loss
    if loss is not None and loss not in _SCORE_LOSSES:
        raise InvalidSetting(
            f"From a log come scores, so the loss is score; got --loss {loss!r:.80}."
        )
    return "score"


def _read_examples(
    labels: Path | None, scores: "Scores | None", kind: str | None, *, labelled: bool
) -> "HoldoutTable":
    from ladderboard.files import Limits, read_holdout  # noqa: PLC0415 - keeps --help fast

    if not labelled and kind is not None:
        raise InvalidSetting("Where there are scores there are no labels; leave --kind out.")
    source = labels if scores is None else {"id": list(scores.ids)}
    limits = Limits(bytes=2**40)
    return read_holdout(source, kind=kind, limits=limits, labelled=labelled)  # type: ignore[arg-type]


def _describe_partial_log(scores: "Scores | None") -> list[str]:

    if scores is None or scores.dataset_size == len(scores):
        return []
    if scores.dataset_size is None:
        said = (
            f"Warning: nothing tells whether the log is whole. The guard is made of its "
            f"{len(scores):,} examples, and will refuse a log with more. For lm-evaluation-harness "
            "leave the run's results_DATE.json beside the samples."
        )
    else:
        said = (
            f"The log has {len(scores):,} of the {scores.dataset_size:,} examples of its dataset. "
            "The guard is made of these, and will refuse a log with more."
        )
    return wrap_lines(said, indent="  ", first="")


def _describe_unused_split(table: "HoldoutTable") -> list[str]:
    """Say that splits, which boards have, mean nothing here."""
    if table.split is None:
        return []
    said = (
        f"The column split is not used by a guard: all {len(table):,} rows are asked about. If "
        "some shall stay private, leave them out of the labels."
    )
    return wrap_lines(said, indent="  ", first="")


def _parse_classes(text: str, kind: str) -> Any:
    """Read classes as the labels are: numbers, or text; quotes hold what has a comma; or any."""
    (row,) = csv.reader([text], skipinitialspace=True)
    if row == ["any"]:
        return "any"
    if kind == "text":
        return row
    try:
        return [int(each) if each.strip().lstrip("+-").isdigit() else float(each) for each in row]
    except ValueError:
        raise InvalidSetting(
            f"The labels are numbers, so classes must be; got {text!r:.80}. If they are names, "
            "give --kind text."
        ) from None


def _describe_classes(guard: "Holdout", *, declared: bool) -> list[str]:
    """Say which classes there are and where they come from, or what it costs that none are."""
    from ladderboard.holdout import UNDECLARED  # noqa: PLC0415 - same

    found = guard.loss
    if found.allowed is not None:
        if declared:
            return []
        said = (
            "The classes were taken from the labels, and are public; any other prediction is "
            "refused. If there are more, make it again with --classes A,B,C."
        )
    elif found.accepts_any:
        said = f"No classes are declared. {UNDECLARED}"
        if found.name == "zero_one" and not declared:
            said += " Some have fewer than five labels; declare all with --classes A,B,C."
    else:
        return []
    return wrap_lines(said, indent="  ", first="")


def _parse_range(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InvalidSetting(
            f"A range is two numbers with a comma between, as in 0,100; got {text!r:.80}."
        ) from None
    return low, high


def _make_loss(name: str, params: dict[str, Any]) -> Any:
    """Make a loss; what is wrong is said in the words of the command line."""
    from ladderboard.losses import loss  # noqa: PLC0415 - keeps --help fast

    try:
        return loss(name, **params)
    except InvalidSetting as error:
        for param in params:
            if f"unexpected keyword argument {param!r}" in str(error):
                raise InvalidSetting(f"The loss {name} takes no --{param}.") from None
        if "range=" in str(error):
            raise InvalidSetting(
                f"The loss {name} needs the range in which labels lie, as in --range 0,100."
            ) from None
        raise


def _make_mechanism(text: str) -> Any:
    """Make a mechanism from its name, or from JSON with its settings."""
    from ladderboard.mechanisms import MECHANISMS, mechanism  # noqa: PLC0415 - as above

    settings: Any = {"mechanism": text}
    if text.lstrip().startswith(("{", "[", '"')):
        try:
            settings = json.loads(text)
        except ValueError as error:
            raise InvalidSetting(f"The mechanism is not JSON: {error}. {_MECHANISM_HINT}") from None
    if not isinstance(settings, dict) or "mechanism" not in settings:
        raise InvalidSetting(
            f"A mechanism is a name, or in JSON an object with one. {_MECHANISM_HINT}"
        )
    kind = MECHANISMS.get(str(settings.get("mechanism")))
    if kind is not None:
        known = {field.name: field.default is MISSING for field in fields(kind) if field.compare}
        lacking = [each for each, needed in known.items() if needed and each not in settings]
        unknown = [setting for setting in settings if setting not in {"mechanism", *known}]
        if lacking:
            raise InvalidSetting(f"{kind.name} needs {', '.join(lacking)}. {_MECHANISM_HINT}")
        if unknown:
            there_is = ", ".join(known) or "none"
            raise InvalidSetting(
                f"{kind.name} has no setting {unknown[0]!r:.80}; there is {there_is}."
            )
    return mechanism(settings)


_MECHANISM_HINT = """Settings go in JSON: --mechanism '{"mechanism": "ladder", "step": 0.01}'"""


def _initial_certificate(guard: "Holdout") -> "Certificate":
    """Return what can be promised before the data: the worst over all that may be seen."""
    from ladderboard.bounds import certificate  # noqa: PLC0415 - keeps --help fast

    rules, meter = guard.meter.rules, guard.meter
    ladders = rules["ladders"]
    return certificate(
        rules["worth"],
        meter.budget,
        None,
        meter.mechanism,
        rules["beta"],
        ladders=ladders,
        opened=ladders,
        amendable=True,
        zero_one=rules["zero_one"],
    )


def _describe_for_json(
    file: str, guard: "Holdout", bound: "Certificate", *, encrypted: bool
) -> dict[str, Any]:
    from ladderboard.holdout import unseen  # noqa: PLC0415 - keeps --help fast

    opening = guard.status().opening
    return {
        "file": file,
        "n": opening["n"],
        "loss": opening["loss"],
        "mechanism": opening["mechanism"],
        **opening["rules"],
        "unseen": unseen(guard.meter.mechanism),
        "bound": bound.describe(),
        "encrypted": encrypted,
        "commitment": opening["commitment"],
        "head": guard.head,
    }


def _describe_guard(
    file: str,
    guard: "Holdout",
    bound: "Certificate",
    key_file: Path | None,
    *,
    grouped: bool,
    option: str | None,
) -> list[str]:
    from ladderboard.cli._guard._wording import describe_bound, describe_settings  # noqa: PLC0415 - same
    from ladderboard.holdout import unseen  # noqa: PLC0415 - same

    opening = guard.status().opening
    n, rules = opening["n"], opening["rules"]
    gain = unseen(guard.meter.mechanism)
    scored = opening["loss"]["loss"] in _SCORE_LOSSES
    what = "examples" if scored else "labels"
    counted = f"{rules['rows']:,} {what} in {n:,} groups" if grouped else f"{n:,} {what}"
    if rules["weighted"]:
        counted += f", by their weights worth {rules['worth']:,}"
    budget = f"{rules['questions']:,} questions on {format_count(rules['ladders'], 'ladder')}"
    paragraphs = [
        f"{file} is made: {counted}; {budget}.",
        f"Loss: {describe_settings('loss', opening['loss'])}.",
        f"Answered by: {describe_settings('mechanism', opening['mechanism'])}."
        + ("" if gain is None else f" Gains below about {gain:.2g} may go unseen."),
        f"Promised before the data, whatever is asked: {describe_bound(bound)}",
        *(
            [_HINT_ONE_LADDER if rules["ladders"] == 1 else _HINT_SEVERAL_LADDERS]
            if bound.vacuous
            else []
        ),
        f"Public: {_PUBLIC_WITH_SCORES if scored else _PUBLIC_WITH_LABELS}.",
        f"Secret: {'' if scored else 'labels, '}risks and the noise key. "
        + (
            f"They are encrypted; {key_file} opens them. Without it all is lost: keep a copy of it "
            "elsewhere than the file."
            if key_file is not None
            else f"Whoever can read {file} can read them; --key-file would encrypt them."
        ),
    ]
    if not grouped:
        paragraphs.append(
            "Are the rows independent of each other? If several come from one patient, user or "
            "document, the promise does not hold: make it again with a column group in "
            + ("--labels TABLE and --loss score." if scored else "the labels.")
        )
    paragraphs.append(f"Keep {file}.mark beside the file: it tells an old copy from the newest.")
    asked = option or ("SCORES.csv" if scored else "PREDICTIONS.csv")
    command = f"  ladderboard guard ask {printable(file)} {asked}"
    key = "" if key_file is None else f" --key-file {printable(key_file)}"
    lines = [
        line for paragraph in paragraphs for line in wrap_lines(paragraph, indent="  ", first="")
    ]
    return [*lines, "Next:", command + key]
