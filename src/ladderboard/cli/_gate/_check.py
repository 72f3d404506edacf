"""``ladderboard gate promote`` and ``gate check``."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard._formatting import format_confidence
from ladderboard.cli._gate._options import GateFile, Predictions, find_candidate, open_gate
from ladderboard.cli._holdout_files import KeyFile, append_summary, escape_markdown, no_summary
from ladderboard.cli._options import (
    AsJson,
    Format,
    InspectLog,
    JunitFile,
    LmEvalSamples,
    MetricOfLog,
    ResultsFile,
    read_scores,
)
from ladderboard.cli._output import echo, echo_json

if TYPE_CHECKING:
    from ladderboard.holdout import Verdict

_NOT_SHOWN, _CANNOT_TELL = 1, 5


class Requirement(StrEnum):
    """What a candidate has to be proven."""

    BETTER = "better"
    NOT_WORSE = "not-worse"


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
        candidate = find_candidate(gate, predictions, scores, file_format, command)
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
        typer.Option(help='The margin of "not worse"; the gate\'s own if left out.'),
    ] = None,
    require: Annotated[
        Requirement | None,
        typer.Option(help="Exit with 0 only if this is proven: better, or not-worse."),
    ] = None,
    file_format: Format = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
    summary: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Append the verdict to a file, in Markdown."),
    ] = None,
) -> None:
    """Compare a candidate with the incumbent: one look.

    A refusal costs nothing. The same candidate with the same incumbent and margin gets the earlier
    verdict and costs nothing, so a run can be repeated.

    Exit codes: 0 the look was answered, or as required; 1 what --require names was not shown; 2 the
    predictions or the arguments are invalid; 3 no looks are left or the gate is closed; 4 the
    gate's file is damaged, or storage failed; 5 cannot tell, with --require.
    """
    writer = no_summary() if summary is None else append_summary(summary, "Gate", summarise_verdict)
    with writer as add_to_summary, open_gate(file, key_file) as gate:
        scores = read_scores(inspect, lm_eval, metric, junit=junit, results=results)
        candidate = find_candidate(gate, predictions, scores, file_format, f"gate check {file}")
        verdict = gate.check(candidate, margin=margin, format=file_format)
        add_to_summary(verdict)
    if as_json:
        echo_json(verdict.describe())
    else:
        echo(str(verdict))
    code = exit_code_of(verdict, require)
    if code:
        raise typer.Exit(code)


def exit_code_of(verdict: "Verdict", require: Requirement | None) -> int:
    """Return the exit code for a verdict and a requirement."""
    if require is None or (verdict.better if require == Requirement.BETTER else verdict.not_worse):
        return 0
    return _CANNOT_TELL if verdict.outcome == "cannot_tell" else _NOT_SHOWN


def summarise_verdict(verdict: "Verdict") -> list[str]:
    """Return a verdict in Markdown."""
    rows = [
        ("verdict", verdict.outcome.replace("_", " ")),
        ("margin of not worse", f"{verdict.margin:g}"),
        ("look", f"{verdict.look:,}"),
        ("looks left", f"{verdict.remaining:,}"),
        ("price of the look", f"{verdict.nats:.1f} nats"),
        ("all verdicts are right with probability", format_confidence(verdict.beta)),
    ]
    if verdict.differing is not None:
        rows.append(("examples that differ", f"{verdict.differing:,}"))
    if verdict.needed is not None:
        rows.append(('net wins needed for "better"', f"{verdict.needed:,}"))
    return [
        "### Gate",
        "",
        escape_markdown(verdict.reason),
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows),
        "",
    ]
