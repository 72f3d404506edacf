"""``ladderboard gate create``: labels or ids, a loss and a budget of looks in one file."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard._formatting import printable
from ladderboard.cli._holdout_files import (
    choose_loss,
    describe_classes,
    describe_partial_log,
    make_loss,
    parse_classes,
    parse_range,
    read_examples,
    require_new_guard,
)
from ladderboard.cli._options import (
    AsJson,
    InspectLog,
    JunitFile,
    LmEvalSamples,
    MetricOfLog,
    ResultsFile,
    parse_integer,
    read_scores,
)
from ladderboard.cli._output import echo, echo_json, wrap_lines

if TYPE_CHECKING:
    from ladderboard.bounds import GatePlan
    from ladderboard.holdout import Gate

_WHO_SEES_CASES = (
    "Who sees which cases failed can fit a candidate to them, and then verdicts promise nothing: "
    "show candidates' authors the verdict only."
)


def create(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to create.")],
    *,
    looks: Annotated[
        int, typer.Option(parser=parse_integer, help="The budget: how many looks are allowed.")
    ],
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="A table with a column label and, if needed, id, group and weight.",
        ),
    ] = None,
    inspect: InspectLog = None,
    lm_eval: LmEvalSamples = None,
    junit: JunitFile = None,
    results: ResultsFile = None,
    metric: MetricOfLog = None,
    margin: Annotated[
        float, typer.Option(help='The usual margin of "not worse", in units of the loss.')
    ] = 0.0,
    worse: Annotated[
        bool, typer.Option("--worse", help='Say "worse", too; then other verdicts cost more.')
    ] = False,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A loss, a metric, or module:function; zero_one if left out."
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="The classes of the loss, which are public."),
    ] = None,
    range_: Annotated[
        str | None,
        typer.Option("--range", metavar="LOW,HIGH", help="The range of the numbers to predict."),
    ] = None,
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
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Encrypt the labels and everything secret with this key file; created if needed.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a gate's file: labels, and a budget of looks at candidates.

    Instead of labels, results of a harness give the ids of the cases; the gate then takes pass or
    fail from such results. The results in this file are not used.

    The plan that is printed says which gains would be proven, and whether the set is too small.
    """
    from ladderboard.bounds import gate_plan  # noqa: PLC0415 - keeps --help fast
    from ladderboard.holdout import Gate  # noqa: PLC0415 - same
    from ladderboard.losses import uses_labels  # noqa: PLC0415 - same

    require_new_guard(file)
    scores = read_scores(inspect, lm_eval, metric, junit=junit, results=results)
    name = choose_loss(loss, labels, scores)
    table = read_examples(labels, scores, None, labelled=uses_labels(name))
    parameters = {
        "classes": None if classes is None else parse_classes(classes, table.kind),
        "range": None if range_ is None else parse_range(range_),
    }
    created = Gate.create(
        file,
        table,
        looks=looks,
        margin=margin,
        worse=worse,
        loss=make_loss(
            name, {key: value for key, value in parameters.items() if value is not None}
        ),
        beta=beta,
        guard=guard,
        key_file=key_file,
    )
    with closing(created) as gate:
        status = gate.status()
        plan = gate_plan(status.n, looks, differ, beta=beta, test=status.test)
        if as_json:
            echo_json({"file": file, **status.describe(), "plan": plan.describe()})
            return
        lines = [
            *describe_partial_log(scores),
            *_describe_gate(file, gate, plan),
            *describe_classes(gate, declared=classes is not None),
        ]
        key = "" if key_file is None else f" --key-file {printable(key_file)}"
        what = "RESULTS.json" if gate.takes == "scores" else "PREDICTIONS.csv"
        option = "--results " if gate.takes == "scores" else ""
        echo(
            *lines,
            "Next:",
            f"  ladderboard gate promote {printable(file)} {option}{what}{key}",
            f"  ladderboard gate check {printable(file)} {option}{what} --require not-worse{key}",
        )


def _describe_gate(file: str, gate: "Gate", plan: "GatePlan") -> list[str]:
    status = gate.status()
    scored = gate.takes == "scores"
    paragraphs = [
        (
            f"{file} is created: {status.n:,} {'cases' if scored else 'examples'}, "
            f"{status.looks:,} looks. With probability {status.confidence} all verdicts are right."
        ),
        *plan.sentences,
        *([_WHO_SEES_CASES] if scored else []),
        f"Keep {file}.mark beside the file: it detects an outdated copy.",
    ]
    return [
        line
        for paragraph in paragraphs
        for line in wrap_lines(
            paragraph, indent="  ", first="  " if paragraph.startswith("  ") else ""
        )
    ]
