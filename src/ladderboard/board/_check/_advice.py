"""What a board can promise with its rules and examples, and advice on what to change."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import (
    format_confidence,
    format_count,
    format_list,
    round_up,
)
from ladderboard.board._folder import PLACEHOLDER
from ladderboard.board._resolution import board_resolution, describe_board_resolution
from ladderboard.bounds import NO_THEOREM, NOTHING_TO_PLAN_WITH, certificate, typical_changes
from ladderboard.errors import InvalidSetting, Problem
from ladderboard.holdout import (
    UNDECLARED_CLASSES,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ladderboard.board._folder import BoardFolder
    from ladderboard.board._resolution import BaselineScore
    from ladderboard.board._rules import DisplayRules, Rules
    from ladderboard.bounds import Certificate, Resolution
    from ladderboard.mechanisms import Mechanism

_TRIVIAL_ERROR = 0.5  # known without data: every risk is within 0.5 of 0.5
_MIN_CLASS_SIZE = 50  # with fewer, a normal law fits an error badly
_MAX_DAYS = 366  # a later deadline counts as none
_MAX_EXAMPLES = 10**9  # the search for a sufficient number stops here


@dataclass(frozen=True)
class BoardPromise:
    """What a board can promise at the end of its budget.

    ``n`` counts independent rows or groups, ``effective_n`` their effective number under weights.
    ``likely`` assumes ``changes`` changes; ``worst`` assumes nothing, and ``likely`` equals it if
    that many changes are impossible. ``resolution`` is what shows and what an attacker could gain.
    ``baseline`` is the best constant prediction or file of the board, ``typical`` the score near
    which gains are stated; they are known to the organiser only.
    """

    n: int
    effective_n: int
    rules: Rules
    mechanism: Mechanism
    changes: int | None
    likely: Certificate
    worst: Certificate
    resolution: Resolution
    baseline: BaselineScore | None
    typical: BaselineScore | None

    @property
    def questions(self) -> int:
        """The budget."""
        return self.rules.questions

    @property
    def ladders(self) -> int:
        """The largest possible number of ladders."""
        return self.rules.ladders

    @property
    def display(self) -> DisplayRules:
        """How losses are shown."""
        return self.rules.display

    @property
    def is_default(self) -> bool:
        """Whether the mechanism is the calibrated one, not one that the rules name."""
        return self.rules.mechanism is None

    @property
    def is_trivial(self) -> bool:
        """Whether it promises no more than is known without data."""
        return self.is_impossible or _error_or_trivial(self.likely) >= _TRIVIAL_ERROR

    @property
    def is_impossible(self) -> bool:
        """Whether nothing can be promised for this mechanism with any number of labels."""
        return self.likely.theorem == NO_THEOREM

    @property
    def sentences(self) -> list[str]:
        """What shows, what an attacker could gain, and the promise, in words."""
        return [
            *describe_board_resolution(self.rules, self.mechanism, self.effective_n, self.typical),
            self._promise_sentence,
        ]

    @property
    def _promise_sentence(self) -> str:
        if self.is_default and not self.likely.is_useful:
            return NOTHING_TO_PLAN_WITH
        if self.is_impossible:
            return f"Nothing can be promised. {self.likely.assumptions[0]}"
        if self.likely.vacuous:
            size = f"{self.effective_n:,} examples and {self.questions:,} submissions"
            reason = f"{self.mechanism.name} reveals too much for {size}"
            return f"There is no useful guarantee: {reason}."
        start = (
            f"With confidence {format_confidence(self.likely.beta)}, the true {self._metric_name} "
            "of the best model lies "
        )
        likely = f"{self._format_reach(self.likely)} what is shown"
        if self.changes is None:
            return f"{start}{likely} at the end of the budget, whatever happens."
        if self.is_default:  # it promises nothing useful about every possible attack
            return f"{start}{likely}, if the best score changes {self.changes:,} times."
        return (
            f"{start}{self._format_reach(self.worst)} what is shown at the end of the budget, "
            f"whatever happens; {self._format_reach(self.likely)} it, if the best score "
            f"changes {self.changes:,} times."
        )

    @property
    def _metric_name(self) -> str:
        """The name of what an interval is about: the metric, or the loss for a root."""
        return "loss" if self.display.shown_as == "root" else self.display.name

    @property
    def baseline_gap(self) -> float | None:
        """The loss that can be gained over the baseline; None if nothing is known about it."""
        return None if self.baseline is None or not self.baseline.risk else self.baseline.risk

    @property
    def visible_step(self) -> float:
        """The smallest gain over the baseline that shows after three records."""
        baseline, error = self.baseline, None
        if baseline is not None:
            error = baseline.standard_error  # 0 for a constant that ranks nothing
            error = error or (None if self.typical is None else self.typical.standard_error)
        return self.mechanism.smallest_visible_gain(
            n=self.effective_n,
            released=self.resolution.released if baseline is None else baseline.risk,
            others=3 * (self.resolution.accounts - 1),
            standard_error=error,
        )

    def _format_reach(self, bound: Certificate) -> str:
        """Return how far the truth may lie below and above what is shown, in the metric's unit."""
        below, above = max(-bound.low, 0), max(bound.high, 0)
        if self.display.shown_as == "complement":
            below, above = above, below
        unit = self.display.unit if self.display.shown_as == "scaled" else 1.0
        return f"between {round_up(unit * below, 2)} below and {round_up(unit * above, 2)} above"

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return {
            "n": self.n,
            "worth": self.effective_n,
            "questions": self.questions,
            "ladders": self.ladders,
            "mechanism": self.mechanism.describe(),
            "changes": self.changes,
            "likely": self.likely.describe(),
            "worst": self.worst.describe(),
            "resolution": self.resolution.describe(),
            "baseline": None if self.baseline is None else self.baseline.risk,
            "hollow": self.is_trivial,
        }


def compute_promise(
    folder: BoardFolder,
    baseline: BaselineScore | None = None,
    typical: BaselineScore | None = None,
) -> BoardPromise:
    """Return what a board can promise before its first question."""
    rules, effective_n = folder.rules, folder.effective_n
    mechanism = rules.mechanism_for(effective_n)
    budget = rules.questions * rules.answers, rules.ladders, rules.beta / rules.answers
    worst, likely, changes = _certificates_at_end(
        mechanism, effective_n, *budget, zero_one=folder.zero_one
    )
    n = folder.part("public").grouping.n
    return BoardPromise(
        n=n,
        effective_n=effective_n,
        rules=rules,
        mechanism=mechanism,
        changes=changes,
        likely=likely,
        worst=worst,
        resolution=board_resolution(rules, mechanism, effective_n, typical),
        baseline=baseline,
        typical=typical,
    )


def is_promise_informative(
    rules: Rules, n: int, questions: int, teams: int, *, zero_one: bool
) -> bool:
    """Return whether these sizes would promise more than is known without data."""
    accounts = rules.attacker_accounts // rules.answers
    rules = replace(rules, questions=questions, teams=teams, accounts=accounts)
    answers = rules.answers
    budget = questions * answers, rules.ladders, rules.beta / answers
    _, likely, _ = _certificates_at_end(rules.mechanism_for(n), n, *budget, zero_one=zero_one)
    return likely.theorem != NO_THEOREM and _error_or_trivial(likely) < _TRIVIAL_ERROR


def _certificates_at_end(
    mechanism: Mechanism, n: int, questions: int, ladders: int, beta: float, *, zero_one: bool
) -> tuple[Certificate, Certificate, int | None]:
    """Return the certificates at the end, worst and likely, and the changes assumed."""
    changes, opened = typical_changes(ladders, questions), min(ladders, questions)

    counted: Any = {"ladders": None, "opened": opened, "amendable": True, "zero_one": zero_one}

    def at_end(changes: int | None) -> Certificate:
        return certificate(n, questions, changes, mechanism, beta, **counted)

    worst = at_end(None)
    try:
        return worst, at_end(changes), changes
    except InvalidSetting:  # a coarse ladder cannot change so often: assume the worst
        return worst, worst, None


def _error_or_trivial(bound: Certificate) -> float:
    return _TRIVIAL_ERROR if bound.error is None else bound.error


def find_mechanism_problems(folder: BoardFolder, promise: BoardPromise) -> Iterator[Problem]:
    """Yield a problem for each setting that must be changed before the board opens."""
    mechanism = promise.mechanism
    if mechanism.zero_one_only and not folder.zero_one:
        message = (
            f"mechanism: {mechanism.name} can be counted under zero-one loss only, without weights "
            "and groups. Here each answer would reveal too much, and nothing could be promised. "
            "Leave mechanism out."
        )
        yield Problem("mechanism", "mechanism", 1, (), message)
    gap = promise.baseline_gap
    if gap is not None and promise.visible_step > gap:
        message = (
            f"The board is too coarse: {_compare_with_gap(promise)} Use more examples, fewer "
            "submissions or teams, a narrower range of the loss, or leave mechanism out."
        )
        yield Problem("too_coarse", "mechanism", 1, (), message)


def _compare_with_gap(promise: BoardPromise) -> str:
    """Return the step that shows beside all that can be gained over the baseline."""
    display, gap = promise.display, promise.baseline_gap or 0.0
    step = min(promise.visible_step, gap) if display.shown_as == "root" else promise.visible_step
    return (
        f"from the best baseline (a constant, or one of your files) to perfect predictions "
        f"{display.name} improves by {display.gain_text(gap, gap)}, and a gain below "
        f"{display.gain_text(step, gap)} may not show after a team's third new best."
    )


def suggest_remedies(folder: BoardFolder) -> list[str]:
    """Return changes that would each end the warning: more examples, fewer questions or teams.

    The numbers are round, and each was tried.
    """
    rules, effective_n = folder.rules, folder.effective_n

    def enough(n: int, questions: int, teams: int) -> bool:
        try:
            return is_promise_informative(rules, n, questions, teams, zero_one=folder.zero_one)
        except InvalidSetting:  # a mechanism that cannot work with this many
            return False

    remedies = []
    examples = next(
        (n for n in _iter_rising(effective_n) if enough(n, rules.questions, rules.teams)), None
    )
    if examples is not None:
        remedies.append(f"{examples:,} independent examples")
    fewer = list(_iter_halves(rules.questions, rules.scored_baseline_count + rules.teams))
    fewer_questions = next(
        (questions for questions in fewer if enough(effective_n, questions, rules.teams)), None
    )
    if fewer_questions is not None:
        remedies.append(f"{fewer_questions:,} submissions")
    # Halve both as often as needed: fewer teams alone are seldom wanted.
    pairs = zip(fewer, _iter_halves(rules.teams, 1), strict=False)
    both_changes = next((pair for pair in pairs if enough(effective_n, *pair)), None)
    if both_changes is not None and both_changes[0] != fewer_questions and rules.ladders > 1:
        remedies.append(
            f"{both_changes[0]:,} submissions for {format_count(both_changes[1], 'team')}"
        )
    return remedies


def _iter_halves(number: int, minimum: int) -> Iterator[int]:
    """Yield half of a number, half of that, and so on, rounded to two digits.

    >>> list(_iter_halves(1_000, 20))
    [500, 250, 120, 60, 30]
    """
    while (number := number // 2) >= minimum:
        digits = 10 ** max(len(str(number)) - 2, 0)
        number = number // digits * digits
        yield number


def _iter_rising(number: int) -> Iterator[int]:
    """Yield growing numbers of two digits, each about a tenth larger.

    >>> [n for n, _ in zip(_iter_rising(3_000), range(5))]
    [3300, 3700, 4100, 4600, 5100]
    """
    while number < _MAX_EXAMPLES:
        digits = 10 ** max(len(str(number)) - 2, 0)
        number = -(-(number + max(number // 10, 1)) // digits) * digits
        yield number


def find_warnings(
    folder: BoardFolder, promise: BoardPromise, now: float, about_sample: Iterable[str] = ()
) -> Iterator[str]:
    """Yield warnings for the organiser, a sentence or two each."""
    rules = folder.rules
    if rules.registration == "open" and rules.attacker_accounts < rules.teams:
        yield (
            "Registration is open, so one person may hold all accounts, and accounts declares "
            f"{rules.attacker_accounts}. Leave accounts out, or use registration: invited."
        )
    if rules.per_team * rules.teams + rules.scored_baseline_count > rules.questions:
        yield (
            f"{rules.teams:,} teams with {rules.per_team:,} submissions each exceed the total of "
            f"{rules.questions:,}: {rules.share:,} are reserved for each team, and the "
            f"other {rules.pool:,} are first come, first served."
        )
    yield from _short_share(rules, now)
    gap = promise.baseline_gap
    if gap is not None and gap / 4 < promise.visible_step <= gap:
        yield f"The board is coarse: {_compare_with_gap(promise)}"
    if not promise.is_default:  # that of the default was measured, and is in the report
        yield from _weak_promise(folder, promise)
    if promise.mechanism.hides_value:
        yield (
            f"{promise.mechanism.name} shows no scores before the close: standings show only who "
            "improved."
        )
    yield from _undeclared_classes(folder)
    yield from _guessed_positive_class(folder)
    yield from _rare_classes(folder)
    yield from about_sample
    if rules.description.startswith(PLACEHOLDER):
        yield "The description is still the placeholder, which participants would read. Write one."
    if not folder.private.any():
        yield (
            "No row is private, so there will be no final ranking on untouched rows. Add a column "
            "split with public and private to get one."
        )


def _short_share(rules: Rules, now: float) -> Iterator[str]:
    """Yield a warning if teams that submit as often as allowed run out long before the deadline.

    No warning if the organiser chose a limit per team, or if the deadline is years away.
    """
    window, deadline = rules.window, rules.deadline
    if window is None or deadline is None or rules.per_team != rules.equal_part:
        return
    if deadline - now > _MAX_DAYS * 86_400:
        return
    spans = (
        (phase.end or now) - max(now if phase.start is None else phase.start, now)
        for phase in rules.phases
    )
    allowed = sum(window.questions * math.ceil(max(span, 0) / window.seconds) for span in spans)
    if allowed > 2 * rules.share:
        yield (
            f"window allows a team {allowed:,} submissions until the deadline, and {rules.share:,} "
            "are reserved for each team: they may be used up long before. Raise submissions, or "
            "let window allow fewer."
        )


def _weak_promise(folder: BoardFolder, promise: BoardPromise) -> Iterator[str]:
    rules = folder.rules
    if promise.is_impossible:
        yield f"Nothing can be promised for {promise.mechanism.name}; leave mechanism out."
    elif promise.is_trivial:
        ways = suggest_remedies(folder)
        on = format_count(promise.ladders, "ladder")
        yield (
            f"{promise.effective_n:,} independent examples are too few for {rules.questions:,} "
            f"submissions on {on}: there is no useful guarantee. "
            + (
                f"It is useful with {', or '.join(ways)}."
                if ways
                else "Use more examples, fewer submissions or fewer teams, or leave mechanism out."
            )
        )


def _rare_classes(folder: BoardFolder) -> Iterator[str]:
    """Yield a warning if a class has too few examples for a metric that depends on it."""
    loss, few = folder.rules.loss, list[str]()
    if loss.is_mean:
        return
    for split in ("public", "private"):
        rows = folder.public if split == "public" else folder.private
        if not rows.any():
            continue
        sizes = loss.class_sizes(loss.read_labels(folder.table.labels[rows]))
        rare = sorted(
            (size, str(class_)) for class_, size in sizes.items() if size < _MIN_CLASS_SIZE
        )
        if rare:
            size, class_ = rare[0]
            others = f" and {format_count(len(rare) - 1, 'other')}" if rare[1:] else ""
            few.append(f"{format_count(size, f'{split} row')} of class {class_}{others}")
    if few:
        yield (
            f"Classes have few examples: {format_list(few)}. With fewer than {_MIN_CLASS_SIZE}, "
            f"{folder.rules.display.name} depends on single examples, and the numbers above are "
            "rough. Collect more of them."
        )


def _guessed_positive_class(folder: BoardFolder) -> Iterator[str]:
    """Yield a warning if the alphabet decided which class the metric is about."""
    rules, positive = folder.rules, folder.rules.loss.positive_class
    if folder.derived and isinstance(positive, str):
        name, (other, _) = rules.display.name, rules.loss.params["classes"]
        yield (
            f"{name} is computed for class {positive}, because it comes last in the alphabet. For "
            f"class {other}, write metric: {{name: {name}, classes: [{positive}, {other}]}}."
        )


def _undeclared_classes(folder: BoardFolder) -> Iterator[str]:
    loss = folder.rules.loss
    if loss.accepts_any:
        declare = "Declare them, as in loss: {name: accuracy, classes: [cat, dog]}. "
        yield (
            f"No classes are declared. {UNDECLARED_CLASSES} "
            + (declare if loss.infers_classes else "")
            + "If the classes cannot be declared, accept this weaker protection."
        )
