"""The public state of a guard: its budget, its certificate and its history."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ladderboard import _settings
from ladderboard.errors import InvalidSetting
from ladderboard.holdout._reply import (
    best_interval,
    describe_bound,
    format_remaining,
    format_risk,
    metric_value,
)
from ladderboard.losses import uses_labels
from ladderboard.mechanisms import largest_standard_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.bounds import Certificate
    from ladderboard.ledger import Book, ChainState
    from ladderboard.mechanisms import Mechanism, VisibleChange

_MAX_NAME_LENGTH = 100
_LEAST_BETA = 1e-99
NOTHING_PROVED = (
    "Nothing is proved about this metric; its protection was only measured against attacks "
    "(docs/explanation/metrics.md)."
)
SHARED_NATS = math.log(3)
"""With a gate and a guard on the same labels, the price of each: a third of the weight is for looks
alone, a third for questions alone, and a third for both."""


@dataclass(frozen=True)
class Meter:
    """Counts used and remaining questions, and computes the certificate.

    Parameters
    ----------
    mechanism
        The mechanism that answers.
    rules
        From the first entry: ``questions``, ``beta``, ``worth``, ``weighted``, ``zero_one`` and
        ``ladders``, the declared maximum; guards of older versions lack the last two. Also
        ``declared``, the original budget if it was changed, and ``corrected`` if labels were
        corrected. Of boards with several live metrics ``answers``, their number, and ``further``,
        what is published for the further ones.
    chain_state
        The state of the ledger's chain.
    verdict_nats
        The price of the verdicts that a gate on the same labels gave.
    read_changes
        Returns the changes up to that state, for mechanisms that are certified by their values.
    """

    mechanism: Mechanism
    rules: dict[str, Any]
    chain_state: ChainState
    verdict_nats: float = 0.0
    read_changes: Callable[[], tuple[VisibleChange, ...]] | None = field(
        default=None, repr=False, compare=False
    )

    @classmethod
    def of(cls, book: Book, chain_state: ChainState) -> Meter:
        """Return the meter of a book."""
        rules = book.opening["rules"]
        nats = _verdict_nats(book, chain_state) if "gate" in rules else 0.0
        return cls(book.mechanism, rules, chain_state, nats, _changes_reader(book, chain_state))

    def changes(self) -> int | tuple[VisibleChange, ...]:
        """Return what a certificate is computed from: the changes, or how many there may be."""
        state = self.chain_state
        if self.read_changes is None or state.charged:
            # Each lost answer may have been a change, on a ladder of its own.
            return state.changes + state.charged * self._answers
        return self.read_changes()

    @property
    def _answers(self) -> int:
        """The number of ladders that answer each question: a board's live metrics."""
        answers: int = self.rules.get("answers", 1)
        return answers

    @property
    def budget(self) -> int:
        """The number of questions allowed."""
        return int(self.rules["questions"])

    @property
    def used(self) -> int:
        """The number of questions used: asked, or charged for lost answers."""
        return self.chain_state.asked + self.chain_state.charged

    @property
    def remaining(self) -> int:
        """The number of questions left; 0 after the close."""
        return 0 if self.chain_state.closed else max(self.budget - self.used, 0)

    def certificate(self, released: float | None) -> Certificate:
        """Return the certificate for the best model so far, from public values only.

        ``released`` is the current value on the ladder. For weighted examples only the Hoeffding
        form is available.

        If the certificate cannot be computed, this returns a vacuous one with the reason: the
        question is recorded by now, so its reply must not fail.
        """
        from ladderboard.bounds import vacuous_certificate  # noqa: PLC0415 - few questions want it

        try:
            return self._certificate(released)
        except Exception as error:  # noqa: BLE001 - whatever it is, the reply comes first
            # All arguments are public, so the message is too.
            return vacuous_certificate(
                f"No certificate could be computed: {error}", self.rules["beta"]
            )

    @property
    def _remaining_beta(self) -> float:
        """Beta after other prices: this many nats more are the same as a smaller beta."""
        beta: float = self.rules["beta"]
        # The certificates of several metrics hold together: each has its share of beta.
        nats = self.verdict_nats + self._published_nats + math.log(self._answers)
        return max(beta * math.exp(-nats), _LEAST_BETA) if nats else beta

    @property
    def _published_nats(self) -> float:
        """The price of what a statistic publishes about the labels, such as class counts."""
        promises = [self.rules.get("promise"), *self.rules.get("further", ())]
        return math.fsum((promise or {}).get("nats", 0.0) for promise in promises)

    def _certificate(self, released: float | None) -> Certificate:
        from ladderboard.bounds import (  # noqa: PLC0415
            CORRECTED,
            NO_THEOREM,
            certificate_of_record,
            vacuous_certificate,
        )

        chain_state, declared, answers = self.chain_state, self.rules.get("ladders"), self._answers
        promise = self.rules.get("promise")
        if promise is not None and not promise.get("effective_n"):
            return vacuous_certificate(NOTHING_PROVED, self.rules["beta"])
        # The kl form is for means of equally weighted losses.
        if self.rules["weighted"] or promise or released is None or released >= 1:
            released = None
        result = certificate_of_record(
            self.rules["worth"],
            self.rules.get("declared", self.budget) * answers,
            self.changes(),
            self.mechanism,
            self._remaining_beta,
            released=released,
            asked=max(self.used, 1) * answers,
            ladders=declared,
            opened=(declared or chain_state.ladders) + chain_state.charged * answers,
            zero_one=self.rules.get("zero_one", False),
            proven=self.rules.get("proven", False),
            effective_n=promise["effective_n"] if promise else None,
        )
        if result.beta != self.rules["beta"]:
            result = replace(result, beta=self.rules["beta"])
        if promise and result.theorem != NO_THEOREM:
            result = replace(result, assumptions=(*result.assumptions, _effective_text(promise)))
        if self.rules.get("corrected") and result.theorem != NO_THEOREM:
            return replace(result, assumptions=(*result.assumptions, CORRECTED))
        return result


def _effective_text(promise: dict[str, Any]) -> str:
    """Return what a certificate of a statistic counts with, in words."""
    return (
        f"The metric is computed from all examples together. It deviates at most as a mean of "
        f"{promise['effective_n']:,} examples does (n_eff), given what the opening entry publishes "
        "of the labels."
    )


def _changes_reader(
    book: Book, chain_state: ChainState
) -> Callable[[], tuple[VisibleChange, ...]] | None:
    """Return the function that reads a book's changes, if its certificates use their values."""
    if not book.mechanism.certified_by_values:
        return None
    return partial(book.visible_changes, chain_state)


def _verdict_nats(book: Book, chain_state: ChainState) -> float:
    """Return the price of a gate's verdicts, for the guard on the same labels."""
    from ladderboard.bounds import LookPrices  # noqa: PLC0415 - few files have a gate

    gate = book.gate_state()
    looks = gate.looks + chain_state.charged
    if not looks:
        return SHARED_NATS
    prices = LookPrices(book.budget)
    return SHARED_NATS + prices.largest(looks, gate.verdicts, lost=chain_state.charged)


InputKind = Literal["predictions", "scores"]


def read_input_kind(opening: dict[str, Any]) -> InputKind:
    """Return whether a guard is asked with predictions or scores, from its opening entry."""
    return "predictions" if uses_labels(opening["loss"]["loss"]) else "scores"


class QuestionRecord(NamedTuple):
    """One question of the history: its ladder, its number, the answer and the time.

    ``error_class`` is released with a new best by mechanisms that depend on standard errors.
    """

    ladder: str
    question: int
    value: float | None
    improved: bool
    time: int
    error_class: int | None = None

    def describe(self) -> dict[str, Any]:
        """Return all fields that the mechanism releases."""
        fields = self._asdict()
        return {name: fields[name] for name in fields if name != "error_class" or fields[name]}


class LadderStatus(NamedTuple):
    """One ladder: its current value, and the numbers of questions and changes."""

    name: str
    released: float | None
    questions: int
    changes: int


@dataclass(frozen=True)
class Status:
    """All public information about a guard."""

    opening: dict[str, Any]
    meter: Meter
    ladders: tuple[LadderStatus, ...]
    history: tuple[QuestionRecord, ...]
    commitment: str
    head: str

    @classmethod
    def from_book(cls, book: Book) -> Status:
        """Return the status of a book; its chain is verified on the way."""
        chain_state, values, entries = book.snapshot()
        names = list(values)
        records = [
            QuestionRecord(
                names[fields["ladder"]],
                question=fields["question"],
                value=fields["value"],
                improved=fields["improved"],
                time=fields["time"],
                error_class=fields.get("error_class"),
            )
            for fields in entries
            if fields["kind"] == "question"
        ]
        improvements: dict[str, list[bool]] = {name: [] for name in names}
        for record in records:
            improvements[record.ladder].append(record.improved)
        ladders = [
            LadderStatus(name, value, len(improvements[name]), sum(improvements[name]))
            for name, value in values.items()
        ]
        opening = book.opening
        meter = Meter.of(book, chain_state)
        hashes = opening["commitment"], chain_state.head.hex()
        return cls(opening, meter, tuple(ladders), tuple(records), *hashes)

    @property
    def released(self) -> float | None:
        """The smallest loss released on any ladder; None if none is published."""
        released = [ladder.released for ladder in self.ladders if ladder.released is not None]
        return min(released, default=None)

    @property
    def _shown(self) -> dict[str, Any] | None:
        """The description of the metric; None if the guard has a loss only."""
        shown: dict[str, Any] | None = self.opening["rules"].get("metric")
        return shown

    @property
    def metric(self) -> str | None:
        """The name of the metric; None if the guard has a loss only."""
        return None if self._shown is None else self._shown["title"]

    @property
    def value(self) -> float | None:
        """``released`` in the metric; the loss itself without one."""
        return metric_value(self.released, self._shown)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the best true value lies: the ends of ``certificate`` in the metric.

        None before the first answer, if every value is withheld, or if nothing is promised.
        """
        return best_interval(self.certificate, shown=self._shown, released=self.released)

    def __str__(self) -> str:
        """Return the best, what is guaranteed, and the questions left, as sentences."""
        left = format_remaining(self.meter.remaining)
        left = f"{left[0].upper()}{left[1:]}."
        if not self.meter.chain_state.asked:
            return f"No questions were asked yet. {left}"
        best = f"The best: {format_risk(self.released, self._shown)}."
        if self.released is None:
            best = "The best is published at the close."
        bound = describe_bound(self.certificate, self._shown, self.released)
        return f"{best} {bound} {left}"

    def smallest_visible_gain(self, ladder: str | None = None) -> float:
        """Return the gain that the next question must have to be shown 19 times out of 20.

        On a ladder, by default the one with the best release; 0 if every gain is shown. Before the
        first change it is that for a loss of 0.1 after three changes.
        """
        mechanism, worth = self.meter.mechanism, self.meter.rules["worth"]
        rows = [
            row
            for row in self.ladders
            if (row.released == self.released if ladder is None else row.name == ladder)
        ]
        if not rows or rows[0].released is None or not rows[0].changes:
            return mechanism.smallest_visible_gain(n=worth)
        others = sorted((row.changes for row in self.ladders if row is not rows[0]), reverse=True)
        classes = [
            record.error_class
            for record in self.history
            if record.ladder == rows[0].name and record.error_class is not None
        ]
        return mechanism.smallest_visible_gain(
            n=worth,
            released=rows[0].released,
            changes=rows[0].changes,
            others=sum(others[: mechanism.shared_ladders]),
            standard_error=largest_standard_error(classes[-1]) if classes else None,
        )

    @property
    def certificate(self) -> Certificate:
        """The certificate for the best model asked on any ladder, about its loss."""
        return self.meter.certificate(self.released)

    def describe(self) -> dict[str, Any]:
        """Return all fields as JSON-able values."""
        opening, chain_state, bound = self.opening, self.meter.chain_state, self.certificate
        interval = best_interval(bound, shown=self._shown, released=self.released)
        return {
            "n": opening["n"],
            "loss": opening["loss"],
            "mechanism": opening["mechanism"],
            **opening["rules"],
            "asked": chain_state.asked,
            "charged": chain_state.charged,
            "remaining": self.meter.remaining,
            "closed": chain_state.closed,
            "released": self.released,
            **({} if self._shown is None else {"value": self.value, "interval": interval}),
            "bound": bound.describe(),
            "declared_ladders": opening["rules"].get("ladders"),
            "ladders": [ladder._asdict() for ladder in self.ladders],
            "history": [record.describe() for record in self.history],
            "commitment": self.commitment,
            "head": self.head,
        }


def check_ladder_name(name: Any) -> None:
    """Refuse an invalid name of a ladder."""
    if (
        not isinstance(name, str)
        or not name
        or len(name) > _MAX_NAME_LENGTH
        or not name.isprintable()
    ):
        raise InvalidSetting(
            f"A ladder's name is a printable text of 1 to {_MAX_NAME_LENGTH} characters; "
            f"got {_settings.safe_repr(name)}."
        )
