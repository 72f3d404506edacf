"""The report on a board's folder: test scoring of its own files, and attacks on its mechanism.

Attacks are played on labels that are coin flips.
"""

from __future__ import annotations

import textwrap
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_count, format_list, format_size, printable
from ladderboard.board._check._advice import compute_promise, find_mechanism_problems, find_warnings
from ladderboard.board._data import make_sample
from ladderboard.board._folder import BoardFolder, is_table, read_folder
from ladderboard.board._resolution import BaselineScore, typical_score
from ladderboard.board._rules import past_deadline
from ladderboard.errors import BrokenLoss, InvalidInput, InvalidRules, Problem
from ladderboard.files import find_label_column
from ladderboard.holdout import Scorer
from ladderboard.mechanisms import Exact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ladderboard.analysts import Analyst
    from ladderboard.board._check._advice import BoardPromise

_LINE_WIDTH = 80
_MAX_CLASSES_NAMED = 12
_MAX_FILES_NAMED = 20
_PERFECT_MESSAGES = {
    "predictions": "The labels, submitted as predictions, score perfectly.",
    "scores": "There are no labels, because evaluators submit scores. Attacks are played as if "
    "each answer were scored right or wrong.",
}


MAX_EXAMPLES, MAX_QUESTIONS = 10_000, 2_000
"""A larger board is played at this size, which takes seconds."""

_REPETITIONS = 3
_MAX_ABSTENTION = 0.2  # the abstaining attack needs a class at least as rare


@dataclass(frozen=True)
class AttackResult:
    """The mean difference between how good an attacker's last model looked and how good it was.

    ``gain`` is for the board's mechanism, ``exact`` for exact scores. ``n`` and ``questions`` are
    the size of the games.
    """

    name: str
    n: int
    questions: int
    repetitions: int
    gain: float
    exact: float

    @property
    def sentence(self) -> str:
        """The result in words."""
        return (
            f"{self.name}: looks {max(self.gain, 0):.3f} better than it is; against exact scores "
            f"{max(self.exact, 0):.3f}."
        )

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return asdict(self)


@dataclass(frozen=True)
class Report:
    """The result of a check.

    ``problems`` must be fixed; ``warnings`` may be intended. ``facts`` describe the board, the
    files that could be scored, and the independence of rows. Without a readable folder there are
    no promise and no attacks.
    """

    name: str
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    promise: BoardPromise | None = None
    attacks: tuple[AttackResult, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the board may open."""
        return not self.problems

    @property
    def lines(self) -> list[str]:
        """The report as plain text, in lines of at most 80 columns."""
        paragraphs = [*self.facts]
        if self.promise is not None:
            paragraphs += self.promise.sentences
        if self.attacks:
            paragraphs.append(self._attacks_heading())
            paragraphs += [f"- {attack.sentence}" for attack in self.attacks]
        paragraphs += [f"Warning: {warning}" for warning in self.warnings]
        paragraphs += [f"Problem: {problem.message}" for problem in self.problems]
        count = len(self.problems)
        paragraphs.append(
            f"{self.name} is ready."
            if self.ok
            else f"{self.name} is not ready: {count} problem{'s' * (count > 1)}."
        )
        return [line for paragraph in paragraphs for line in _wrap_line(paragraph)]

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return {
            "name": self.name,
            "ok": self.ok,
            "problems": [
                {**asdict(problem), "ids": list(problem.ids)} for problem in self.problems
            ],
            "warnings": list(self.warnings),
            "facts": list(self.facts),
            "promise": None if self.promise is None else self.promise.describe(),
            "attacks": [attack.describe() for attack in self.attacks],
        }

    def _attacks_heading(self) -> str:
        first, promise = self.attacks[0], self.promise
        smaller = promise is not None and (first.n, first.questions) != (
            promise.effective_n,
            promise.questions,
        )
        size = f"{first.n:,} examples and {first.questions:,} submissions"
        note = f", played at {size} to be quick" if smaller else ""
        return (
            f"What an attacker could gain, with coin flips as labels (mean of {first.repetitions} "
            f"games{note}):"
        )

    def __str__(self) -> str:
        return "\n".join(self.lines)


def check_board(
    folder: BoardFolder | Path | str, *, now: float | None = None, seed: int = 0
) -> Report:
    """Check a board: rules, holdout, scoring, promise and attacks. It takes some seconds.

    Parameters
    ----------
    folder
        The path of a board's folder, or the folder already read.
    now
        The time to compare deadlines with, in seconds since 1970; default: the current time.
    seed
        The seed of the simulated attacks.
    """
    now = time.time() if now is None else now
    if not isinstance(folder, BoardFolder):
        path = Path(folder)
        try:
            folder = read_folder(path)
        except InvalidRules as error:
            return Report(path.resolve().name, problems=error.problems)

    grader = FolderGrader(folder)
    label_problems = grader.check_labels()
    files = {} if folder.sample is None else {"The sample submission": folder.sample}
    files |= {f"The baseline {name!r}": path for name, path in folder.baselines.items()}
    graded = {name: grader.check_file(path) for name, path in files.items()}
    baseline = grader.best_baseline()
    promise = compute_promise(folder, baseline, typical_score(grader.public_scorer, baseline))
    facts = [
        *_describe_board(folder, promise),
        *_describe_classes(folder),
        *([] if label_problems else [_PERFECT_MESSAGES[folder.rules.takes]]),
        *(f"{name} can be scored." for name, wrong in graded.items() if not wrong),
        *_describe_data(folder),
        _independence_question(folder, promise),
    ]
    return Report(
        name=folder.rules.slug,
        problems=(
            *label_problems,
            *(problem for wrong in graded.values() for problem in wrong),
            *grader.check_data(),
            *find_mechanism_problems(folder, promise),
            *_find_past_deadline(folder, now),
        ),
        warnings=tuple(find_warnings(folder, promise, now, _sample_warnings(grader))),
        facts=tuple(facts),
        promise=promise,
        attacks=()
        if folder.rules.mechanism is None  # measured when it was calibrated
        else tuple(
            play_attacks(
                promise,
                abstention=grader.loss.abstention_accuracy(grader.labels),
                seed=seed,
            )
        ),
    )


def _find_past_deadline(folder: BoardFolder, now: float) -> list[Problem]:
    return [
        Problem("deadline", "end", 1, (), f"{sentence} Move it.")
        for sentence in past_deadline(folder.rules, now)
    ]


class FolderGrader:
    """Scores files as the board will, and reports only whether that worked."""

    def __init__(self, folder: BoardFolder) -> None:
        self.folder = folder
        self.loss = folder.rules.loss
        self.scorer = Scorer(
            folder.table, self.loss, folder.rules.files.limits, columns=folder.rules.columns
        )
        self.labels = self.loss.read_labels(folder.table.labels)
        self.public_scorer = Scorer(
            folder.table,
            self.loss,
            folder.rules.files.limits,
            rows=folder.public,
            columns=folder.rules.columns,
        )

    def check_labels(self) -> list[Problem]:
        """Return problems if the labels, used as predictions, do not score perfectly."""
        try:
            losses = self._losses(self.scorer.read(self._perfect_predictions()).values)
        except (InvalidInput, BrokenLoss) as error:
            message = f"The labels cannot be scored as predictions: {error}"
            return [Problem("gold", None, 1, (), message)]
        problems = []
        for split in ("public", "private"):
            mask = self.folder.public if split == "public" else self.folder.private
            errors = int(np.count_nonzero(losses[mask]))
            if errors:
                message = (
                    f"The labels as predictions must have a loss of 0; of the {split} rows "
                    f"{errors:,} of {int(mask.sum()):,} have another."
                )
                problems.append(Problem("gold", None, errors, (), message))
        return problems

    def best_baseline(self) -> BaselineScore | None:
        """Return the best of constants, the sample and the baselines on the public rows."""
        if not self.loss.uses_labels:
            return None
        scorer = self.public_scorer
        results = [scorer.best_constant()]
        for path in (self.folder.sample, *self.folder.baselines.values()):
            try:
                results += [] if path is None else [scorer.score(scorer.read(path))]
            except InvalidInput:  # ``check_file`` reports it
                continue
        baselines = [BaselineScore.of(scorer, result) for result in results if result is not None]
        return min(baselines, default=None)

    def check_file(self, path: Path) -> list[Problem]:
        """Return the problems of a file of predictions."""
        name = str(path.relative_to(self.folder.path))
        try:
            aligned = self.scorer.read(path).values
            losses = self._losses(aligned)
        except BrokenLoss as error:
            return [Problem("loss", None, 1, (), f"{name}: {error}")]
        except InvalidInput as error:
            problems = error.problems or (Problem("loss", None, 1, (), str(error)),)
            return [replace(problem, message=f"{name}: {problem.message}") for problem in problems]
        scored = self.folder.public | self.folder.private
        if not losses[scored].any():
            if self.folder.rules.takes == "scores":
                message = (
                    f"{name}: every score is 1. After such a submission no other could be better."
                )
                return [Problem("perfect", None, 1, (), message)]
            message = f"{name}: every prediction is right. The file must not contain the labels."
            return [Problem("holds_labels", None, 1, (), message)]
        return []

    def check_data(self) -> list[Problem]:
        """Return a problem for each data file that holds the labels."""
        problems = []
        for name, path in self.folder.data.items():
            if not self.loss.uses_labels or path == self.folder.sample or not is_table(path):
                continue
            try:
                column = find_label_column(path, self.folder.table, self.folder.rules.columns)
            except InvalidInput:  # not a table; people read what they like
                continue
            if column is not None:
                message = (
                    f"data/{name}: the column {_settings.safe_repr(column)} holds the labels, and "
                    "participants can download this file. Remove the column."
                )
                problems.append(Problem("holds_labels", name, 1, (), message))
        return problems

    def check_generated_sample(self) -> str | None:
        """Return why the board would refuse the sample that the Data page makes, if it would."""
        try:
            self.scorer.read(make_sample(self.loss, self.scorer.roster))
        except InvalidInput as error:
            return str(error)
        return None

    def _losses(self, aligned: NDArray[Any]) -> NDArray[Any]:
        """Return the loss of each example; for a statistic its risk in each place."""
        losses, risk = self.loss.evaluate(self.labels, aligned)
        return losses if risk is None else np.full(len(losses), round(risk, 9))

    def _perfect_predictions(self) -> NDArray[Any]:
        """Return perfect predictions in the form that the loss takes."""
        return self.loss.perfect_predictions(self.folder.table.labels)


def _describe_board(folder: BoardFolder, promise: BoardPromise) -> list[str]:
    rules = folder.rules
    public, private = int(folder.public.sum()), int(folder.private.sum())
    ignored = len(folder.table) - public - private
    rows = format_count(public, "public row")
    rows += f", {private:,} private" * bool(private) + f", {ignored:,} ignored" * bool(ignored)
    if folder.table.group is not None:
        rows += f"; the public ones are {promise.n:,} groups"
    if promise.effective_n != promise.n:
        rows += f", by their weights worth {promise.effective_n:,}"
    ladder = "one ladder for all" if rules.ladder == "board" else "a ladder for each"
    for_baselines = (
        f", {rules.scored_baseline_count} for baselines" if rules.scored_baseline_count else ""
    )
    mechanism = "" if promise.is_default else f"; the mechanism is {promise.mechanism.name}"
    budget = (
        f"{rules.questions:,} submissions{for_baselines}; at most {rules.teams:,} teams with "
        f"{rules.share:,} reserved for each, {ladder}{mechanism}."
    )
    end = ["There is no end: it takes submissions until you close it."]
    return [
        f"{rules.slug}: {rules.title}",
        f"{rows}.",
        budget,
        *(end if rules.deadline is None else []),
    ]


def _describe_classes(folder: BoardFolder) -> list[str]:
    allowed, positive = folder.rules.loss.allowed, folder.rules.loss.positive_class
    about = []
    if positive is not None:
        name = folder.rules.display.name
        about = [f"{name} is computed for class {_settings.safe_repr(positive)}."]
    if allowed is None:
        return about
    named = ", ".join(map(_settings.safe_repr, allowed[:_MAX_CLASSES_NAMED]))
    named += f" and {len(allowed) - _MAX_CLASSES_NAMED:,} more" * (
        len(allowed) > _MAX_CLASSES_NAMED
    )
    source = ", taken from the labels or the sample submission" if folder.derived else ""
    classes = f"Classes{source}: {named}. They are public; any other prediction is refused."
    return [classes, *about]


def _describe_data(folder: BoardFolder) -> list[str]:
    """Return the files that participants can download."""
    sizes = {
        name: format_size(path.stat().st_size)
        for name, path in folder.data.items()
        if path != folder.sample
    }
    listed = [f"{name} ({size})" for name, size in list(sizes.items())[:_MAX_FILES_NAMED]]
    rest = len(sizes) - len(listed)
    listed += [f"{rest:,} more"] if rest else []
    return [f"Participants can download {format_list(listed)}."] if listed else []


def _sample_warnings(grader: FolderGrader) -> Iterator[str]:
    if grader.folder.sample is not None:
        return
    refusal = grader.check_generated_sample()
    if refusal is None:
        yield "There is no sample_submission.csv: the Data page offers one with equal predictions."
    else:
        yield (
            "There is no sample_submission.csv, and the board would refuse the one that the "
            f"Data page makes: {refusal} Add your own."
        )


def _independence_question(folder: BoardFolder, promise: BoardPromise) -> str:
    if not folder.rules.loss.is_mean:
        return (
            f"Are the {len(folder.table):,} rows independent? Rows of one patient, user or video "
            f"are not, and {folder.rules.display.name} takes no groups: intervals are too narrow "
            "then, and gains may be chance. Keep one row of each."
        )
    if folder.table.group is None:
        return (
            f"Are the {len(folder.table):,} rows independent? Rows of one patient, user or video "
            "are not: name it in a column `group`."
        )
    return f"Are the {promise.n:,} public groups independent of each other? The promise assumes it."


def _wrap_line(text: str) -> list[str]:
    """Return wrapped lines; control characters are escaped."""
    return textwrap.wrap(
        printable(text), _LINE_WIDTH, subsequent_indent="  ", break_on_hyphens=False
    )


def play_attacks(
    promise: BoardPromise, *, abstention: float | None = None, seed: int = 0
) -> list[AttackResult]:
    """Play the majority attack and the strongest other ones against a board's mechanism.

    ``abstention`` is how often the prediction that is most surely wrong is right; None if there is
    no such prediction.
    """
    # Imported here so that a server that plays no attack does not load them.
    from ladderboard.analysts import AbstainingAttack, MajorityAttack, ShiftedMajority, SybilAttack  # noqa: PLC0415
    from ladderboard.arena import run  # noqa: PLC0415

    n = min(promise.effective_n, MAX_EXAMPLES)
    questions = min(promise.questions, MAX_QUESTIONS)
    mechanism = promise.mechanism
    accounts = min(promise.resolution.accounts, questions)
    strongest = SybilAttack(accounts=accounts) if accounts > 1 else ShiftedMajority()
    analysts: dict[str, Analyst] = {"majority": MajorityAttack(), strongest.name: strongest}
    if abstention is not None and abstention <= _MAX_ABSTENTION:
        analysts["abstaining"] = AbstainingAttack(rare=abstention)
    rows = run(
        {"board": mechanism, "exact": Exact()},
        analysts,
        n=n,
        k=questions,
        repetitions=_REPETITIONS,
        seed=seed,
    )

    def mean(analyst: str, against: str) -> float:
        biases = [row.bias for row in rows if (row.analyst, row.mechanism) == (analyst, against)]
        return sum(biases) / len(biases)

    return [
        AttackResult(name, n, questions, _REPETITIONS, mean(name, "board"), mean(name, "exact"))
        for name in analysts
    ]
