"""``ladderboard guard create``: labels, a loss, a mechanism and a budget in one file."""

import json
import math
from contextlib import closing
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard._formatting import format_count, format_undetected_gains, printable
from ladderboard.cli._guard._files import (
    Columns,
    Labels,
    LossName,
    NewFile,
    NewKeyFile,
    Range,
    describe_classes,
    describe_partial_log,
    describe_secrecy,
    read_new_examples,
)
from ladderboard.cli._options import (
    AsJson,
    InspectLog,
    LmEvalSamples,
    parse_integer,
    read_scores,
)
from ladderboard.cli._output import echo, echo_json, wrap_lines
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.bounds import Certificate
    from ladderboard.files import HoldoutTable
    from ladderboard.holdout import Holdout

_TYPICAL_LOSS = 0.1  # at which the gains of mechanisms with constant steps are stated
_HINT_ONE_LADDER = (
    "More labels, or fewer questions, would give a useful bound; see ladderboard plan."
)
_HINT_SEVERAL_LADDERS = "Fewer ladders, more labels or fewer questions would give a useful bound."


def create(
    file: NewFile,
    *,
    questions: Annotated[
        int, typer.Option(parser=parse_integer, help="The budget: how many questions are allowed.")
    ],
    ladders: Annotated[
        int | None,
        typer.Option(
            parser=parse_integer,
            help="The number of ladders, 1 if left out: one for each study, run or team that need "
            "not beat the best of the others. More ladders weaken the certificate.",
        ),
    ] = None,
    labels: Labels = None,
    inspect: InspectLog = None,
    lm_eval: LmEvalSamples = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The metric, such as roc_auc or f1_macro, in place of a loss. With a log: which "
            "score of it, a scorer[,reducer] of Inspect or a metric[,filter] of "
            "lm-evaluation-harness.",
        ),
    ] = None,
    loss: LossName = None,
    columns: Columns = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="The classes of the loss, which are public. If left out, zero_one takes them from "
            "the labels; 'any' accepts every prediction.",
        ),
    ] = None,
    range_: Range = None,
    k: Annotated[
        int | None, typer.Option(parser=parse_integer, help="How many guesses top_k counts.")
    ] = None,
    clip: Annotated[
        float | None,
        typer.Option(help="The smallest probability in the log loss; smaller ones are clipped."),
    ] = None,
    quantile: Annotated[
        float | None, typer.Option(help="The quantile of the pinball loss.")
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The mechanism: a name, or a name with settings in JSON; a growing ladder, "
            "calibrated for this size, if left out.",
        ),
    ] = None,
    protection: Annotated[
        str | None,
        typer.Option(
            metavar="open|balanced|strict",
            help="The protection of the growing ladder, balanced if left out: strict leaves an "
            "attacker less to gain, and hides larger gains.",
        ),
    ] = None,
    beta: Annotated[
        float, typer.Option(help="The probability that the certificate may be false.")
    ] = 0.05,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The type of the labels: number or text; detected if left out."
        ),
    ] = None,
    key_file: NewKeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Create a guard's file: labels, and a budget of questions about them.

    Instead of labels, the log of an evaluation gives the ids of the examples; the guard is then
    asked with scores from such logs. The scores of this log are not used.

    Nothing can be changed later: the first entry of the ledger commits to everything that decides
    the answers. To choose the numbers of labels and questions, see ladderboard plan.
    """
    from ladderboard.holdout import Holdout  # noqa: PLC0415 - keeps --help fast

    if labels is not None and metric is not None and loss is not None:
        raise InvalidSetting("--metric takes the place of --loss; leave one of them out.")
    examples = read_new_examples(
        file,
        labels,
        read_scores(inspect, lm_eval, None if labels is not None else metric),
        loss=metric if labels is not None and metric is not None else loss,
        columns=columns,
        classes=classes,
        range_=range_,
        kind=kind,
        k=k,
        clip=clip,
        quantile=quantile,
    )
    table, scores, chosen = examples.table, examples.scores, examples.metric
    created = Holdout.create(
        file,
        table,
        questions=questions,
        ladders=1 if ladders is None else ladders,
        loss=chosen.loss,
        metric=chosen if chosen.is_named else None,
        columns=examples.columns,
        mechanism=None if mechanism is None else _make_mechanism(mechanism),
        protection=protection,
        beta=beta,
        key_file=key_file,
    )
    with closing(created) as guard:
        bound = _initial_certificate(guard)
        if as_json:
            description = _describe_for_json(file, guard, bound, encrypted=key_file is not None)
            echo_json({**description, "unused": [] if table.split is None else ["split"]})
        else:
            grouped = table.group is not None
            option = None if scores is None else "--lm-eval FILE" if lm_eval else "--inspect LOG"
            lines = _describe_guard(file, guard, bound, key_file, grouped=grouped, option=option)
            lines[-2:-2] = describe_classes(guard, declared=classes is not None)
            echo(*describe_partial_log(scores), *_describe_unused_split(table), *lines)
        _warn_if_too_coarse(guard)


def _warn_if_too_coarse(guard: "Holdout") -> None:
    """Warn the owner on stderr if the answers are too coarse to show a better model."""
    from ladderboard.holdout import format_risk, format_risk_gain  # noqa: PLC0415 - same

    constant = guard.best_constant()
    if constant is None:
        return
    mechanism, rules = guard.meter.mechanism, guard.meter.rules
    risk, error = constant
    gain = mechanism.smallest_distinguishable_gain(
        n=rules["worth"],
        released=risk,
        changes=1,
        standard_error=error if mechanism.needs == "standard_error" else None,
    )
    if not 0 < risk <= gain:
        return
    shown = rules.get("metric")
    smallest = format_risk_gain(gain, risk, shown)
    gains = "" if smallest is None else f", and gains below {smallest} may not be detected"
    score = f"a loss of {risk:.2g}" if shown is None else printable(format_risk(risk, shown))
    text = (
        f"Warning: the answers are too coarse for these labels. A constant prediction has {score}"
        f"{gains}: even a perfect "
        "model may look no better. Use more examples, allow fewer questions, or declare a range "
        "no wider than the labels. (Keep this warning private: it depends on the labels.)"
    )
    typer.echo("\n".join(wrap_lines(text, indent="  ", first="")), err=True)


def _describe_unused_split(table: "HoldoutTable") -> list[str]:
    """Return a note that guards do not use the column split, which is for boards."""
    if table.split is None:
        return []
    text = (
        f"The column split is not used by a guard: all {len(table):,} rows count. To keep some "
        "private, leave them out of the labels."
    )
    return wrap_lines(text, indent="  ", first="")


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
            f"A mechanism is a name, or a JSON object with a name. {_MECHANISM_HINT}"
        )
    kind = MECHANISMS.get(str(settings.get("mechanism")))
    if kind is not None:
        known = {field.name: field.default is MISSING for field in fields(kind) if field.compare}
        missing = [name for name, required in known.items() if required and name not in settings]
        unknown = [setting for setting in settings if setting not in {"mechanism", *known}]
        if missing:
            raise InvalidSetting(f"{kind.name} needs {', '.join(missing)}. {_MECHANISM_HINT}")
        if unknown:
            settings_of_kind = ", ".join(known) or "none"
            raise InvalidSetting(
                f"{kind.name} has no setting {unknown[0]!r:.80}; its settings: {settings_of_kind}."
            )
    return mechanism(settings)


_MECHANISM_HINT = """Settings go in JSON: --mechanism '{"mechanism": "ladder", "step": 0.01}'"""


def _initial_certificate(guard: "Holdout") -> "Certificate":
    """Return the certificate before any data are seen: the worst case."""
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
        proven=rules.get("proven", False),
    )


def _describe_for_json(
    file: str, guard: "Holdout", bound: "Certificate", *, encrypted: bool
) -> dict[str, Any]:
    opening = guard.status().opening
    return {
        "file": file,
        "n": opening["n"],
        "loss": opening["loss"],
        "mechanism": opening["mechanism"],
        **opening["rules"],
        "unseen": guard.status().smallest_visible_gain() or None,
        "bound": bound.describe(),
        "encrypted": encrypted,
        "commitment": opening["commitment"],
        "head": guard.head,
    }


def _describe_growing(guard: "Holdout", bound: "Certificate") -> str:
    """Return what a growing ladder shows, and what it leaves to an attacker."""
    from ladderboard.bounds import (  # noqa: PLC0415 - keeps --help fast
        NOTHING_TO_PLAN_WITH,
        TYPICAL_LOSS,
        describe_resolution,
        resolution,
        unknown_standard_error,
    )
    from ladderboard.holdout import format_risk, format_risk_gain  # noqa: PLC0415 - same

    mechanism, rules, budget = guard.meter.mechanism, guard.meter.rules, guard.meter.budget
    ladders, metric = rules["ladders"], rules.get("metric")
    by_model = mechanism.needs == "standard_error"
    typical = guard.plausible_model() if by_model else (TYPICAL_LOSS, None)
    released, error = typical or (1.0, unknown_standard_error(rules["worth"]))
    released = round(released, 3)  # of a plausible model: more digits would say nothing
    result = resolution(
        mechanism,
        n=rules["worth"],
        questions=budget,
        teams=ladders,
        accounts=mechanism.attacker_accounts(ladders),
        released=released,
        standard_error=error,
    )
    sentences = describe_resolution(
        result,
        near="any score" if typical is None else printable(format_risk(released, metric)),
        gain_text=lambda gain: (
            f"{gain / error:.2g} standard errors"
            if typical is None and error  # any would do: gains are multiples of it
            else format_risk_gain(gain, released, metric) or "0"
        ),
    )
    if typical is None:
        sentences.append(_describe_standard_errors(guard))
    return " ".join(sentences if bound.is_useful else [*sentences, NOTHING_TO_PLAN_WITH])


def _describe_standard_errors(guard: "Holdout") -> str:
    """Return how large a standard error may be, and where gains are stated in the metric."""
    from ladderboard.holdout import format_risk_gain  # noqa: PLC0415 - keeps --help fast

    rules = guard.meter.rules
    shown = rules.get("metric")
    label = "the loss" if shown is None else printable(shown["title"])
    largest = 0.5 / math.sqrt(rules["worth"])  # of a mean of numbers in [0, 1]
    bounded = guard.loss.is_mean and (shown is None or shown["as"] != "root")
    text = format_risk_gain(largest, None, shown) if bounded else None
    limit = "" if text is None else f"A standard error of {label} is at most {text}. "
    return f"{limit}After the first answer, ladderboard guard status states these gains in {label}."


def _describe_guard(
    file: str,
    guard: "Holdout",
    bound: "Certificate",
    key_file: Path | None,
    *,
    grouped: bool,
    option: str | None,
) -> list[str]:
    from ladderboard.cli._guard._wording import describe_settings  # noqa: PLC0415 - same
    from ladderboard.holdout import describe_bound, format_risk_gain  # noqa: PLC0415 - same

    opening = guard.status().opening
    n, rules, shown = opening["n"], opening["rules"], opening["rules"].get("metric")
    gain = guard.status().smallest_visible_gain()
    gain_text = format_risk_gain(gain, _TYPICAL_LOSS, shown) if gain else None
    growing = bool(guard.meter.mechanism.rung_growth(1))
    answered = f"Mechanism: {describe_settings('mechanism', opening['mechanism'])}." + (
        f" {format_undetected_gains(gain_text)}" if gain_text is not None else ""
    )
    scored = guard.takes == "scores"
    noun = "examples" if scored else "labels"
    counted = f"{rules['rows']:,} {noun} in {n:,} groups" if grouped else f"{n:,} {noun}"
    if rules["weighted"]:
        counted += f", by their weights worth {rules['worth']:,}"
    budget = format_count(rules["questions"], "question")
    if rules["ladders"] > 1:
        budget += f" on {rules['ladders']:,} ladders"
    measured = (
        f"Metric: {printable(shown['title'])}."
        if shown is not None
        else f"Loss: {describe_settings('loss', {**opening['loss'], 'classes': None})}."
    )
    paragraphs = [
        f"{file} is created: {counted}, {budget}.",
        f"{measured} {_describe_growing(guard, bound) if growing else answered}",
    ]
    if guard.loss.wanted:
        paragraphs.append(f"Send {guard.loss.wanted}.")
    if not growing or bound.is_useful:
        paragraphs.append(f"Guaranteed in advance, whatever is asked: {describe_bound(bound)}")
        if bound.vacuous:
            paragraphs.append(_HINT_ONE_LADDER if rules["ladders"] == 1 else _HINT_SEVERAL_LADDERS)
    if "function" in opening["loss"]:
        paragraphs.append(
            "If your function fails or returns a number outside [0, 1], the answer is the worst "
            "loss, and the question is used: try it first with ladderboard.testing.check_loss."
        )
    paragraphs.append(describe_secrecy(file, key_file, "noise key" if scored else "labels"))
    if not grouped:
        paragraphs.append(
            "Rows of one patient, user or document are not independent: if there are any, create "
            "it again with a column group in "
            + ("--labels TABLE and --loss score." if scored else "the labels.")
        )
    paragraphs.append(f"Keep {file}.mark beside the file: it detects an outdated copy.")
    argument = option or ("SCORES.csv" if scored else "PREDICTIONS.csv")
    command = f"  ladderboard guard ask {printable(file)} {argument}"
    key = "" if key_file is None else f" --key-file {printable(key_file)}"
    lines = [
        line for paragraph in paragraphs for line in wrap_lines(paragraph, indent="  ", first="")
    ]
    return [*lines, "Next:", command + key]
