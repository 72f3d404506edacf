"""``ladderboard gate``: paired verdicts about candidates, as often as the budget allows."""

from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard._formatting import format_confidence, format_count, format_digits, printable
from ladderboard.cli._app import make_group
from ladderboard.cli._guard._files import (
    Columns,
    GateFile,
    KeyFile,
    Labels,
    LossName,
    NewFile,
    NewKeyFile,
    Predictions,
    Range,
    Summary,
    describe_classes,
    describe_partial_log,
    describe_secrecy,
    echo_status,
    open_gate,
    open_summary,
    read_new_examples,
)
from ladderboard.cli._options import (
    AsJson,
    Format,
    InspectLog,
    JunitFile,
    LmEvalSamples,
    MetricOfLog,
    ResultsFile,
    parse_integer,
    predictions_source,
    read_scores,
)
from ladderboard.cli._output import echo, echo_json, wrap_lines
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.adapters import Scores
    from ladderboard.bounds import GatePlan
    from ladderboard.holdout import Gate, GateStatus, Verdict
    from ladderboard.losses import Metric

_SHOWN_LOOKS = 10
_MAX_HEADER = 10_000
_NOT_SHOWN, _CANNOT_TELL = 1, 5
_RESULT_OPTIONS = {".json": "--results", ".xml": "--junit", ".eval": "--inspect"}
_WHO_SEES_CASES = (
    "Show the authors of candidates the verdict only: if they see which cases failed, they can fit "
    "a candidate to them, and verdicts promise nothing."
)
_NO_PLAN = (
    "There is no plan for this loss: which gains and margins are proven depends on how much the "
    "errors of the two models differ."
)
_NO_MARGIN = 'The margin is 0, so "not worse" means "better".'
_PRIVATE_PLAN = "(Keep what this says about margins private: it depends on the labels.)"


_HELP = """Compare candidates with an incumbent on hidden examples, as often as the budget allows.

Exit codes: 0 done, and the verdict is as required; 1 another verdict; 2 invalid arguments or
predictions; 3 no looks are left or the gate is closed; 4 its file is damaged, or storage failed; 5
cannot tell, which includes clearly worse unless the gate was made with --worse. A refusal costs no
look and changes nothing.
"""

app = make_group(
    "gate",
    _HELP,
    {
        "create": "_guard._gate:create",
        "promote": "_guard._gate:promote",
        "check": "_guard._gate:check",
        "status": "_guard._gate:status",
        "export": "_guard._export:export",
        "restore": "_guard._export:restore",
        "backup": "_guard._export:backup",
        "serve": "_guard._serve:serve",
    },
    {
        "create": "Create a gate's file from labels or ids.",
        "promote": "Make a model the incumbent.",
        "check": "Compare a candidate with the incumbent.",
        "status": "Show looks, incumbent and verdicts.",
        "export": "Write the public side of the ledger.",
        "restore": "Continue with an older copy of the file.",
        "backup": "Copy the file while it is in use.",
        "serve": "Answer over HTTP or a Unix socket.",
    },
)


class Requirement(StrEnum):
    """What a candidate has to be proven."""

    BETTER = "better"
    NOT_WORSE = "not-worse"


def create(
    file: NewFile,
    *,
    looks: Annotated[
        int, typer.Option(parser=parse_integer, help="The budget: how many looks are allowed.")
    ],
    labels: Labels = None,
    inspect: InspectLog = None,
    lm_eval: LmEvalSamples = None,
    junit: JunitFile = None,
    results: ResultsFile = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With labels: the metric, such as accuracy or mae, in place of a loss. With a "
            "log: which score of it, a scorer[,reducer] of Inspect or a metric[,filter] of "
            "lm-evaluation-harness.",
        ),
    ] = None,
    margin: Annotated[
        float, typer.Option(help='The usual margin of "not worse", in units of the loss.')
    ] = 0.0,
    worse: Annotated[
        bool,
        typer.Option(
            "--worse", help='Also allow the verdict "worse"; other verdicts then cost more.'
        ),
    ] = False,
    loss: LossName = None,
    columns: Columns = None,
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="The classes of the loss, which are public."),
    ] = None,
    range_: Range = None,
    beta: Annotated[
        float, typer.Option(help="The probability that any verdict may be false.")
    ] = 0.05,
    differ: Annotated[
        float,
        typer.Option(help="For the plan: the share of examples on which candidates will differ."),
    ] = 0.1,
    guard: Annotated[
        bool,
        typer.Option("--guard", help="Answer a guard's questions from the same file, too."),
    ] = False,
    key_file: NewKeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Create a gate's file: labels, and a budget of looks at candidates.

    Instead of labels, results of a harness give the ids of the cases; the gate then takes pass or
    fail from such results. The results in this file are not used.

    The plan that is printed says which gains would be proven, and whether the set is too small.
    """
    from ladderboard.bounds import gate_plan  # noqa: PLC0415 - keeps --help fast
    from ladderboard.holdout import Gate  # noqa: PLC0415 - same

    logs = {
        "--results RESULTS.json": results,
        "--junit RESULTS.xml": junit,
        "--inspect LOG": inspect,
        "--lm-eval FILE": lm_eval,
    }
    given = next((option for option, path in logs.items() if path is not None), "")
    if labels is None and not given:
        raise InvalidSetting(
            "A gate needs labels, or ids from the results of a harness: give one of --labels "
            f"LABELS.csv, {', '.join(logs)}."
        )
    logged = None if labels is not None else metric
    examples = read_new_examples(
        file,
        labels,
        read_scores(inspect, lm_eval, logged, junit=junit, results=results),
        loss=metric if labels is not None and metric is not None else loss,
        columns=columns,
        classes=classes,
        range_=range_,
    )
    scores = examples.scores
    _check_margin(margin, examples.metric)
    created = Gate.create(
        file,
        examples.table,
        looks=looks,
        margin=margin,
        worse=worse,
        loss=examples.metric.loss,
        columns=examples.columns,
        beta=beta,
        guard=guard,
        key_file=key_file,
    )
    with closing(created) as gate:
        status = gate.status()
        plan = gate_plan(status.n, looks, differ, beta=beta, test=status.test)
        if labels is not None:
            _warn_if_too_coarse(gate, plan, examples.metric)
        if as_json:
            echo_json({"file": file, **status.describe(), "plan": plan.describe()})
            return
        lines = [
            *describe_partial_log(scores),
            *_describe_gate(file, gate, plan, examples.metric, key_file),
            *describe_classes(gate, declared=classes is not None),
        ]
        key = "" if key_file is None else f" --key-file {printable(key_file)}"
        what = given or ("SCORES.csv" if gate.takes == "scores" else "PREDICTIONS.csv")
        echo(
            *lines,
            "Next:",
            f"  ladderboard gate promote {printable(file)} {what}{key}",
            f"  ladderboard gate check {printable(file)} {what} --require not-worse{key}",
        )


def _check_margin(margin: float, metric: "Metric") -> None:
    """Refuse a margin in the labels' unit; the message has it in units of the loss."""
    unit = metric.loss.unit
    if margin < 1 or unit == 1:
        return
    remedy = (
        f"To allow {margin:g} more than {metric.title} r, give ((r + {margin:g})² - r²) / "
        f"{unit:.15g}; or use --metric mae."
        if metric.shown_as == "root"
        else f"{margin:g} is --margin {margin / unit:.3g}."
    )
    raise InvalidSetting(f"A margin is in units of the loss, of which 1 is {unit:.15g}. {remedy}")


def _describe_unit(metric: "Metric") -> list[str]:
    """Return in which unit gains and margins are, if it is not that of the labels."""
    if metric.loss.unit == 1:
        return []
    text = f"Gains and margins are in units of the loss: {metric.loss.explanation}."
    if metric.shown_as in {"scaled", "root"}:
        shown = format_digits(metric.display(0.01), 3)
        text += f" {metric.title} {shown} is a loss of 0.01."
    if metric.shown_as == "root":
        allowed = f"{metric.title} {format_digits(metric.display(0.02), 3)}"
        text += f" From there a margin of 0.01 allows {allowed}; from a smaller one it allows more."
    return [text]


def _warn_if_too_coarse(gate: "Gate", plan: "GatePlan", metric: "Metric") -> None:
    """Warn the owner on stderr if a gain to be proven is above a constant's loss."""
    constant = gate.best_constant()
    if constant is None or not constant[0]:
        return
    risk, gain = constant[0], plan.rows[0].gain  # a worst case: errors that vary less prove more
    if not metric.loss.is_binary and gain is not None and gain >= risk:
        shown = f" ({metric.title} {metric.display(risk):.4g})" if metric.is_named else ""
        text = (
            f"Warning: a constant prediction has a loss of only {risk:.2g}{shown}. "
            'Models may gain too little to be proven "better". Use more examples, a range '
            "no wider than the labels, or a loss that is larger for the same errors, such as mae. "
            "(Keep this warning private: it depends on the labels.)"
        )
        typer.echo("\n".join(wrap_lines(text, indent="  ", first="")), err=True)


def _describe_gate(
    file: str, gate: "Gate", plan: "GatePlan", metric: "Metric", key_file: Path | None
) -> list[str]:
    status = gate.status()
    scored = gate.takes == "scores"
    constant = None if scored else gate.best_constant()
    # --json has the plan that does not depend on labels.
    limited = replace(plan, largest_margin=constant[0]) if constant and constant[0] else plan
    planned = [
        *limited.sentences,
        *filter(None, [limited.judge_margin(status.margin)]),
        *([_PRIVATE_PLAN] if limited.sentences != plan.sentences else []),
    ]
    unplanned = [_NO_PLAN, *([] if status.margin else [_NO_MARGIN])]
    paragraphs = [
        (
            f"{file} is created: {status.n:,} {'cases' if scored else 'examples'}, "
            f"{format_count(status.looks, 'look')}. With confidence {status.confidence}, all "
            "verdicts are right."
        ),
        *_describe_unit(metric),
        *(planned if scored or metric.loss.is_binary else unplanned),
        *([_WHO_SEES_CASES] if scored else []),
        describe_secrecy(file, key_file, "incumbent's results" if scored else "labels"),
        f"Keep {file}.mark beside the file: it detects an outdated copy.",
    ]
    return [
        line
        for paragraph in paragraphs
        for line in wrap_lines(
            paragraph, indent="  ", first="  " if paragraph.startswith("  ") else ""
        )
    ]


def promote(
    file: GateFile,
    predictions: Predictions = "",
    *,
    inspect: InspectLog = None,
    lm_eval: LmEvalSamples = None,
    junit: JunitFile = None,
    results: ResultsFile = None,
    metric: MetricOfLog = None,
    file_format: Format = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a model the incumbent, which candidates are compared with. It costs no look."""
    with open_gate(file, key_file) as gate:
        scores = read_scores(inspect, lm_eval, metric, junit=junit, results=results)
        command = f"gate promote {file}"
        candidate = _find_candidate(gate, predictions, scores, file_format, command)
        number = gate.promote(candidate, format=file_format)
    if as_json:
        echo_json({"file": file, "incumbent": number})
    else:
        echo(f"This model is now the incumbent, number {number:,}.")


def check(
    file: GateFile,
    predictions: Predictions = "",
    *,
    inspect: InspectLog = None,
    lm_eval: LmEvalSamples = None,
    junit: JunitFile = None,
    results: ResultsFile = None,
    metric: MetricOfLog = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help='The margin of "not worse", in units of the loss; the gate\'s own if left out.'
        ),
    ] = None,
    require: Annotated[
        Requirement | None,
        typer.Option(help="Exit with 0 only if this is proven: better, or not-worse."),
    ] = None,
    file_format: Format = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
    summary: Summary = None,
) -> None:
    """Compare a candidate with the incumbent: one look.

    A refusal costs nothing. The same candidate with the same incumbent and margin gets the earlier
    verdict and costs nothing, so a run can be repeated. Predictions equal to the
    incumbent's are not worse, at no cost; scores and test results equal to its own cost a look.

    Exit codes: 0 answered, and as required; with --require, 1 another verdict; 2 the predictions or
    the arguments are invalid; 3 no looks are left or the gate is closed; 4 the gate's file is
    damaged, or storage failed; with --require, 5 cannot tell, which includes clearly worse unless
    the gate was made with --worse.
    """
    writer = open_summary(summary, "Gate", _summarise_verdict)
    with writer as add_to_summary, open_gate(file, key_file) as gate:
        scores = read_scores(inspect, lm_eval, metric, junit=junit, results=results)
        candidate = _find_candidate(gate, predictions, scores, file_format, f"gate check {file}")
        verdict = gate.check(candidate, margin=margin, format=file_format)
        add_to_summary(verdict)
    if as_json:
        echo_json(verdict.describe())
    else:
        echo(str(verdict))
    code = _exit_code(verdict, require)
    if code:
        raise typer.Exit(code)


def meets(verdict: "Verdict", require: Requirement) -> bool:
    """Return whether a verdict proves what is required."""
    return verdict.better if require == Requirement.BETTER else verdict.not_worse


def _exit_code(verdict: "Verdict", require: Requirement | None) -> int:
    if require is None or meets(verdict, require):
        return 0
    return _CANNOT_TELL if verdict.outcome == "cannot_tell" else _NOT_SHOWN


def _summarise_verdict(verdict: "Verdict") -> list[tuple[str, str]]:
    rows = [
        ("verdict", verdict.outcome.replace("_", " ")),
        ("margin of not worse", f"{verdict.margin:g}"),
        ("look", f"{verdict.look:,}" if verdict.look else "none used"),
        ("looks left", f"{verdict.remaining:,}"),
        ("all verdicts are right with confidence", format_confidence(verdict.beta)),
    ]
    if verdict.differing is not None:
        rows.append(("examples that differ", f"{verdict.differing:,}"))
    if verdict.needed is not None:
        rows.append(('net wins needed for "better"', f"{verdict.needed:,}"))
    return rows


def _find_candidate(
    gate: Any, predictions: str, scores: "Scores | None", file_format: str | None, command: str
) -> Any:
    """Return predictions or scores in the form that a gate takes."""
    if scores is None:
        if not predictions:
            raise InvalidSetting(
                "Give predictions: a file, - for a pipe, or results with --junit, --results, "
                "--inspect or --lm-eval."
            )
        option = _RESULT_OPTIONS.get(PurePath(predictions).suffix)
        if option is not None and gate.takes == "scores":
            raise InvalidSetting(
                f"This gate takes the results of a harness; give the file as {option} {predictions}"
            )
        if gate.takes == "scores" and _lacks_scores(Path(predictions)):
            raise InvalidSetting(
                "This gate takes the results of a harness, with --results, --junit, --inspect or "
                f"--lm-eval, or a file with the columns id and score; {predictions} lacks them."
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


def _lacks_scores(path: Path) -> bool:
    """Return whether this is a CSV file whose first line names no column of scores."""
    if path.suffix.lower() not in {".csv", ".tsv"} or not path.is_file():
        return False
    with path.open("rb") as file:
        first = file.readline(_MAX_HEADER)
    return b"score" not in first.replace(b"\0", b"").lower()  # also in UTF-16


def status(
    file: GateFile,
    *,
    check: Annotated[
        bool,
        typer.Option("--check", help="First recompute every verdict from the stored secrets."),
    ] = False,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Show the public state: looks, incumbent and the last verdicts.

    The whole chain of the ledger is checked.
    """
    echo_status(file, key_file, "gate", _format_status, check=check, as_json=as_json)


def _format_status(file: str, current: "GateStatus", checked: int | None) -> list[str]:
    from ladderboard.holdout import OUTCOMES  # noqa: PLC0415 - keeps --help fast

    taken = format_count(len(current.history), "look")
    used = f"{taken} taken, {current.remaining:,} of {current.looks:,} left"
    if current.closed:
        used = f"{taken} taken, of {current.looks:,}; closed"
    counts = [
        f"{current.count(outcome):,} {outcome.replace('_', ' ')}"
        for outcome in OUTCOMES
        if outcome != "worse" or current.worse
    ]
    incumbent = f"number {current.incumbent:,}" if current.incumbent else "none yet; promote one"
    settings = f"margin {current.margin:g} (loss); all verdicts right with "
    settings += f"confidence {current.confidence}"
    lines = [
        f"{file}: {current.n:,} examples; {settings}",
        used,
        f"Incumbent: {incumbent}",
        f"Verdicts: {', '.join(counts)}",
    ]
    if len(current.history) > _SHOWN_LOOKS:
        lines.append(f"The last {_SHOWN_LOOKS} of {taken}:")
    for record in current.history[-_SHOWN_LOOKS:]:
        differ = "" if record.differing is None else f", {record.differing:,} differ"
        needed = ""
        if record.needed is not None:
            needed = f", better needed {record.needed:,} more wins than losses"
        lines.append(
            f"  look {record.look:>4,}: {record.outcome.replace('_', ' ')} (incumbent "
            f"{record.incumbent:,}, margin {record.margin:g}{differ}{needed})"
        )
    if checked is not None:
        answers = format_count(checked, "answer")
        lines += ["", f"Checked: {answers} recomputed from the stored secrets."]
    return lines
