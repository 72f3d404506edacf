"""The guard: a holdout that answers as many questions as its budget allows."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import InvalidRisk, InvalidSetting, InvalidState
from ladderboard.holdout._open_file import OpenFile, create_file
from ladderboard.holdout._reply import (
    Reply,
    ReplyTexts,
    best_interval,
    format_reply,
    format_risk,
    loss_texts,
    metric_interval,
    metric_value,
)
from ladderboard.holdout._status import Meter, Status, check_ladder_name
from ladderboard.ledger import ScoredQuestion

if TYPE_CHECKING:
    from pathlib import Path

    from ladderboard.bounds import Certificate
    from ladderboard.holdout._file import GuardFile
    from ladderboard.holdout._remote import RemoteHoldout
    from ladderboard.holdout._reply import Interval
    from ladderboard.holdout._scorer import Scorer
    from ladderboard.ledger import Book, ChainState, LedgerEnvironment
    from ladderboard.losses import Loss, Metric
    from ladderboard.mechanisms import Mechanism


class Holdout(OpenFile):
    """Labels behind a budget, in one file.

    Made by :meth:`create`, :meth:`open` or :meth:`connect`. Safe with threads and with several
    processes that open the file; it can be pickled, and unpickling opens the file again.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, ladderboard as lb
    >>> folder = tempfile.TemporaryDirectory()
    >>> labels = np.random.default_rng(0).integers(2, size=1000)
    >>> guard = lb.Holdout.create(pathlib.Path(folder.name) / "guard.db", labels=labels,
    ...                           metric="accuracy", questions=100, mechanism=lb.Ladder(step=0.02))
    >>> print(guard.ask(labels ^ (np.arange(1000) % 5 == 0)))
    The best is now accuracy 0.8. 99 questions left.
    >>> print(guard.ask(labels ^ (np.arange(1000) % 4 == 0)))
    No measurable improvement. The best: accuracy 0.8. Improvements smaller than about 0.02 may not
    be detected. 98 questions left.
    >>> guard.metric, guard.value, guard.released    # released is always a loss
    ('accuracy', 0.8, 0.2)
    >>> low, high = guard.interval                   # of the best true accuracy
    >>> low < 0.8 < high
    True
    >>> folder.cleanup()
    """

    def __init__(self, book: Book, scorer: Scorer, file: GuardFile, ladder: str = "") -> None:
        gate = book.opening["rules"].get("gate")
        if gate is not None and not gate["guard"]:
            raise InvalidState(f"{file.path} is a gate's file: use lb.Gate, or ladderboard gate.")
        super().__init__(book, scorer, file)
        self._name = ladder
        self._last_texts: tuple[tuple[Any, ...], ReplyTexts | None] = ((), None)

    @classmethod
    def create(
        cls,
        path: Path | str,
        labels: Any = None,
        *,
        questions: int,
        ladders: int = 1,
        loss: str | Loss | Any = "zero_one",
        metric: str | Metric | None = None,
        columns: Any = None,
        ids: Any = None,
        classes: Any = None,
        group: Any = None,
        weight: Any = None,
        kind: Any = None,
        mechanism: str | Mechanism | Any = None,
        protection: str | None = None,
        beta: float = 0.05,
        key_file: Path | str | None = None,
        key: bytes | None = None,
        environment: LedgerEnvironment | None = None,
    ) -> Holdout:
        """Create a file that holds the labels and answers a number of questions about them.

        Parameters
        ----------
        path
            A new file; an existing one is refused.
        labels
            One per example; or a table, a frame or a file with a column ``label`` and optional
            columns ``id``, ``group`` and ``weight``. Not used with ``loss="score"``.
        questions
            The budget, over all ladders.
        ladders
            The maximum number of ladders: one per study, run or team that should not have to beat
            the best of another. The first question on a ladder is answered nearly exactly, so more
            ladders need coarser settings and weaken the certificate. Ladders are started by their
            first question, until this number is reached.
        loss
            A loss, its name, or a function of (labels, predictions) that can be imported.
        metric
            In place of a loss: a metric, or its name, such as ``"roc_auc"``. Sentences and
            ``reply.value`` are then in the metric; ``reply.released`` stays a loss. A loss by the
            name of a metric is taken for it.
        columns
            The names of columns in files: ``{"id": "image", "prediction": "label"}``; lists of
            names for several. Also ``label``, if its name differs from the prediction's.
        ids
            The examples' ids; with them predictions may come in any order.
        classes
            The classes of the loss, if it has classes. They are public. With ``zero_one`` they are
            inferred from the labels if not given, unless a class has fewer than five labels;
            ``"any"`` accepts every prediction, which helps an attacker.
        group
            The group of each example: losses are averaged within a group, and n counts groups.
        weight
            The weight of each example; do not compute weights from labels.
        kind
            The kind of the labels, ``"number"`` or ``"text"``; detected if not given.
        mechanism
            The mechanism that answers; by default ``GrowingLadder.calibrated`` for the budget and
            the number of ladders, which may all belong to one attacker.
        protection
            How much the default mechanism protects: ``"open"``, ``"balanced"`` (the default) or
            ``"strict"``. More protection leaves an attacker less to gain, and hides larger gains.
        beta
            The probability with which certificates may be false.
        key_file
            Encrypts the labels and all other secrets. It is created if it does not exist.
        key
            Thirty-two bytes for the noise; random if not given.
        environment
            Clock and salts, for tests.
        """
        from ladderboard.bounds import read_count  # noqa: PLC0415 - asking needs none

        questions = read_count("questions", questions)
        return cls(
            *create_file(
                path,
                labels,
                budget=questions,
                ladders=_settings.integer("ladders", ladders, at_least=1, at_most=questions),
                loss=loss,
                metric=metric,
                columns=columns,
                parts={"ids": ids, "group": group, "weight": weight, "kind": kind},
                classes=classes,
                mechanism=mechanism,
                protection=protection,
                beta=beta,
                key_file=key_file,
                key=key,
                environment=environment,
            )
        )

    @staticmethod
    def connect(url: str, *, token: str | None = None) -> RemoteHoldout:
        """Return a guard served by ``ladderboard guard serve``, at its URL or Unix socket."""
        from ladderboard.holdout._remote import RemoteHoldout  # noqa: PLC0415 - loads HTTP

        return RemoteHoldout(url, token=token)

    def ask(
        self,
        predictions: Any,
        *,
        training: float | None = None,
        format: str | None = None,  # noqa: A002 - the word people use
        ladder: str = "",
    ) -> Reply:
        """Ask about a model by its predictions: a file, an array, a list or a frame.

        A refusal costs nothing and changes nothing. Repeated predictions get the earlier answer
        for free; scores are a new question each time, because whether they are equal depends on the
        labels. When the budget is spent, this raises ``BudgetSpent``.

        Parameters
        ----------
        predictions
            With ids in any order, or one per example in the holdout's order.
        training
            The model's mean loss on its training data, if the mechanism uses it.
        format
            The format of a file; detected if not given.
        ladder
            The name of another ladder than this one. If it is new and all declared ladders are in
            use, this raises ``TooManyLadders``.
        """
        if ladder:
            check_ladder_name(ladder)
        book = self._book
        if training is not None:
            training = _settings.number("training", training, at_least=0, at_most=1)
        name = ladder or self._name
        submission = self._scorer.read(predictions, training=training, format=format)
        nonce = self._scorer.nonce()
        fields: dict[str, Any] = {
            "submission": submission.digest,
            "training": training,
            "ladder": name,
            "nonce": nonce,
        }
        question = ScoredQuestion(risk=math.nan, **fields)

        def score() -> ScoredQuestion:
            _check_training(book.mechanism, training)
            return ScoredQuestion(**fields, **self._scorer.evidence(submission, book))

        outcome = self._answer(
            lambda: book.find_duplicate(submission.digest, name, nonce=nonce),
            score,
            lambda score: book.ask(question, score),
        )
        release, shown = outcome.release, self._shown
        meter = Meter.of(book, outcome.chain_state)
        remaining = meter.remaining
        shown_numbers = (*release[:3], outcome.smallest_gain)
        last_numbers, texts = self._last_texts  # most answers show the same numbers
        if texts is None or shown_numbers != last_numbers:
            texts = loss_texts(release, outcome.smallest_gain, shown)
            self._last_texts = shown_numbers, texts

        def read_best() -> tuple[ChainState, float | None]:
            return self._book.chain_state_and_value(name)

        # The best may have improved since an answer that is repeated: its bound and interval are
        # about the best now, from one reading.
        best_now = cache(read_best) if outcome.repeated else None

        def certify() -> Certificate:
            if best_now is None:
                return meter.certificate(release.value)
            chain_state, best = best_now()
            return Meter.of(self._book, chain_state).certificate(best)

        def locate(bound: Certificate) -> Interval | None:
            best = release.value if best_now is None else best_now()[1]
            return metric_interval(bound, shown=shown, released=best)

        return Reply(
            released=release.value,
            improved=release.improved,
            question=release.question,
            remaining=remaining,
            reason=format_reply(
                release,
                texts,
                again=outcome.repeated,
                remaining=remaining,
                advice=self._scorer.loss.advice(submission.read),
            ),
            score=release.score,
            ladder=name,
            again=outcome.repeated,
            certify=certify,
            proven=release.proven,
            metric=None if shown is None else shown["title"],
            value=metric_value(release.value, shown),
            locate=locate,
        )

    def ladder(self, name: str) -> Holdout:
        """Return another ladder on the same holdout and budget; its first question starts it.

        For a second study, or another run of early stopping, that should not have to beat the best
        of the first. The maximum number was declared in ``create``; the certificate covers all of
        them together.
        """
        check_ladder_name(name)
        return type(self)(self._book, self._scorer, self._file, name)

    @property
    def ladders(self) -> int:
        """The maximum number of ladders."""
        return int(self._book.max_ladders or 1)

    def check_ladder(self, name: str = "") -> None:
        """Raise ``TooManyLadders`` if a question on a ladder (default: this one) would raise it."""
        self._book.check_ladder(name or self._name)

    @property
    def meter(self) -> Meter:
        """The numbers of questions allowed, used and left."""
        return Meter.of(self._book, self._book.chain_state())

    @property
    def released(self) -> float | None:
        """The loss of the best so far on this ladder; 1 before the first question."""
        return self._book.ladder_value(self._name)

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

        None before the first answer, if the released value is withheld, or if nothing is promised.
        """
        chain_state, value = self._book.chain_state_and_value(self._name)
        bound = Meter.of(self._book, chain_state).certificate(value)
        return best_interval(bound, shown=self._shown, released=value)

    @property
    def certificate(self) -> Certificate:
        """The certificate for the best model asked on this ladder so far, about its loss."""
        return self._current_certificate(self._name)

    @property
    def _shown(self) -> dict[str, Any] | None:
        """The description of the metric, from the first entry."""
        shown: dict[str, Any] | None = self._book.opening["rules"].get("metric")
        return shown

    def _current_certificate(self, ladder: str) -> Certificate:
        chain_state, value = self._book.chain_state_and_value(ladder)
        return Meter.of(self._book, chain_state).certificate(value)

    def status(self) -> Status:
        """Return everything public, with the history."""
        return Status.from_book(self._book)

    def check(self) -> int:
        """Recompute every release; the same as ``verify_ledger``."""
        return self.verify_ledger()

    def close_for_good(self) -> float | None:
        """End all questions; return this ladder's last estimate, also if it was withheld before."""
        values = dict(zip(self._book.ladder_names(), self._book.close(), strict=True))
        return values.get(self._name, self.released)

    def __repr__(self) -> str:
        named, released = f", ladder={self._name!r}" if self._name else "", self.released
        if released is not None and released < 1:
            named += f", best={format_risk(released, self._shown)!r}"
        return f"Holdout({str(self._file.path)!r}{named}, remaining={self.remaining})"

    def _constructor_options(self) -> tuple[Any, ...]:
        return (self._name,)


def _check_training(mechanism: Mechanism, training: float | None) -> None:
    """Refuse a missing or superfluous training loss, as the mechanism itself would."""
    if mechanism.needs_training and training is None:
        raise InvalidRisk(
            f"{mechanism.name} needs training=, the mean loss on the training data, in [0, 1]."
        )
    if training is not None and not mechanism.needs_training:
        raise InvalidSetting(f"{mechanism.name} does not use training=; leave it out.")
