"""An open file with labels and a ledger: what a guard and a gate share."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ladderboard.errors import BrokenLedger, InvalidSetting, StorageFailed
from ladderboard.files import DeclaredColumns
from ladderboard.holdout._export import write_guard_bundle
from ladderboard.holdout._file import SAMPLE, GuardFile
from ladderboard.holdout._sample import decode_sample, describe_sample, make_sample, sample_digest
from ladderboard.holdout._scorer import Scorer
from ladderboard.holdout._status import InputKind, Meter, read_input_kind
from ladderboard.ledger import Commitment, SqliteStorage
from ladderboard.losses import loss as loss_of
from ladderboard.losses import metric as metric_of
from ladderboard.mechanisms import GrowingLadder
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.files import Limits
    from ladderboard.ledger import Book, ChainHead, LedgerEnvironment
    from ladderboard.losses import Loss
    from ladderboard.mechanisms import Mechanism

Score = TypeVar("Score")
Answer = TypeVar("Answer")


class OpenFile:
    """A file with labels and a ledger, open for a guard or a gate.

    Safe with threads and with several processes that open the file.
    """

    def __init__(self, book: Book, scorer: Scorer, file: GuardFile) -> None:
        self._book, self._scorer, self._file = book, scorer, file

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        key_file: Path | str | None = None,
        labels: Any = None,
        ids: Any = None,
        group: Any = None,
        weight: Any = None,
        kind: Any = None,
        loss: Any = None,
        mechanism: Mechanism | None = None,
        environment: LedgerEnvironment | None = None,
    ) -> Self:
        """Open a file that ``create`` made.

        Labels are optional; if given, they, their ids, groups and weights must be the stored ones.
        ``loss`` and ``mechanism`` are needed only if they are custom ones.
        """
        read_labels = None
        if labels is not None or ids is not None:
            read_labels = partial(
                make_sample, labels, ids=ids, group=group, weight=weight, kind=kind
            )
        file = guard_file(path, key_file, loss, mechanism, environment)
        return cls(*file.open(read_labels), file)

    @classmethod
    def restore(
        cls,
        path: Path | str,
        charge: int,
        *,
        copy: Path | str | None = None,
        key_file: Path | str | None = None,
        loss: Any = None,
        mechanism: Mechanism | None = None,
        environment: LedgerEnvironment | None = None,
    ) -> Self:
        """Open an old copy of a file, and continue with it.

        ``copy`` replaces the file at ``path`` first; the old file is kept as ``FILE.replaced-N``.

        ``charge`` is the number of questions and looks that may have been answered since the copy
        was made; they are subtracted from the budget, and recorded in the chain. Other arguments
        are as for :meth:`open`.
        """
        file = guard_file(path, key_file, loss, mechanism, environment)
        source = None if copy is None else Path(copy).absolute()
        return cls(*file.restore(charge, source), file)

    def _answer(
        self,
        find: Callable[[], Answer | None],
        score: Callable[[], Score],
        ask: Callable[[Callable[[], Score]], Answer],
    ) -> Answer:
        """Return the answer that ``find`` finds, or score predictions and ``ask``.

        Nothing is scored before it is known that there is no answer and no refusal, so that their
        time does not depend on labels. What takes long is scored before the transaction.
        """
        if self._scorer.is_quick:
            try:
                return ask(score)
            except StorageFailed as failed:  # an answer can be read where nothing can be written
                answer = None if failed.uncertain else find()
                if answer is None:
                    raise
                return answer
        answer = find()
        if answer is None:
            scored = score()
            answer = ask(lambda: scored)
        return answer

    @property
    def loss(self) -> Loss:
        """The loss, with its classes."""
        return self._scorer.loss

    @property
    def takes(self) -> InputKind:
        """Whether questions are predictions, or scores (with the loss ``"score"``)."""
        return read_input_kind(self._book.opening)

    @property
    def has_text_ids(self) -> bool:
        """Whether examples have ids that are text, so that files should have them, too."""
        return not self._scorer.roster.has_integer_ids

    @property
    def closed(self) -> bool:
        """Whether it was closed for good."""
        return self._book.chain_state().closed

    @property
    def budget(self) -> int:
        """The number of questions and looks allowed."""
        return self._book.budget

    @property
    def remaining(self) -> int:
        """The number of questions and looks left, over all ladders."""
        return Meter.of(self._book, self._book.chain_state()).remaining

    @property
    def head(self) -> str:
        """The hash of the ledger's last entry; keep it to detect rewritten entries."""
        return self._book.head().hash.hex()

    def _constructor_options(self) -> tuple[Any, ...]:
        """Return what the constructor takes besides book, scorer and file."""
        return ()

    def with_limits(self, limits: Limits) -> Self:
        """Return the same guard or gate for a server, with size limits for predictions.

        Its clients have no labels, so their predictions may be named like labels.
        """
        file = replace(self._file, limits=limits)
        scorer = self._scorer.with_limits(limits).accepting_label_names()
        return type(self)(self._book, scorer, file, *self._constructor_options())

    def __reduce__(self) -> tuple[Any, ...]:
        options = self._constructor_options()
        return _reopen, (type(self), self._file.for_other_process(), *options)

    def best_constant(self) -> tuple[float, float] | None:
        """Return the risk of the best constant prediction and its standard error, for the owner.

        They reveal labels. It costs no question. None if the loss has no constant predictions.
        """
        best = self._scorer.best_constant()
        return None if best is None else (best.risk, self._scorer.standard_error(best))

    def plausible_model(self) -> tuple[float, float] | None:
        """Return the risk of a plausible good model and its standard error, for the owner.

        They depend on the labels, by how many each class has. None for a mean of losses.
        """
        result = self._scorer.plausible_model() if self._scorer.loss.uses_labels else None
        return None if result is None else (result.risk, self._scorer.standard_error(result))

    def validate(self, predictions: Any, *, format: str | None = None) -> None:  # noqa: A002
        """Refuse predictions that cannot be scored, as a question or a look would; it is free."""
        self._scorer.read(predictions, format=format)

    def verify_ledger(self) -> int:
        """Recompute every release from the key and the secret side; return how many were verified.

        Raises ``BrokenLedger`` with what differs: the labels, the key, or an entry. For a mechanism
        that uses the losses of examples, which are not stored, only hashes and states are checked,
        and the result is 0.
        """
        book = self._book
        sample = decode_sample(book.read_encrypted(SAMPLE))
        salt = book.read_encrypted("salt of the holdout")
        committed = Commitment("holdout", sample_digest(describe_sample(sample)), salt)
        if committed.hash.hex() != book.opening["holdout"]:
            raise BrokenLedger("The labels differ from the ones that were committed to.")
        return book.check()

    def backup(self, to: Path | str) -> None:
        """Copy the file while it is in use. To continue with the copy, ``restore`` it."""
        SqliteStorage(self._file.path).backup(to)

    def close(self) -> None:
        """Close the file in all threads after their current use; the next use opens it again."""
        self._book.storage.close()

    def reveal(self, out: Path | str, *, labels: bool = False) -> ChainHead:
        """Write the secrets of the file into a bundle for verification; return the head.

        Only after ``close_for_good``. The labels are included only with ``labels=True``.
        """
        return write_guard_bundle(self._book, out, labels=labels)


def _reopen(cls: type[OpenFile], file: GuardFile, *options: Any) -> OpenFile:
    return cls(*file.open(), file, *options)


def create_file(
    path: Path | str,
    labels: Any,
    *,
    budget: int,
    ladders: int,
    loss: Any,
    metric: Any = None,
    columns: Any = None,
    parts: dict[str, Any],
    classes: Any,
    mechanism: Any,
    beta: float,
    key_file: Path | str | None,
    key: bytes | None,
    environment: LedgerEnvironment | None,
    protection: str | None = None,
    gate_rules: Callable[[Scorer, Mechanism], dict[str, Any]] | None = None,
) -> tuple[Book, Scorer, GuardFile]:
    """Create a file with labels and an empty ledger.

    ``parts`` are the columns of the sample besides labels; ``gate_rules`` returns the rules of a
    gate, for a file that has one.
    """
    from ladderboard.bounds import read_beta  # noqa: PLC0415 - asking needs none

    beta = read_beta(beta)
    settings = {} if classes is None else {"classes": classes}
    shown = None if metric is None else metric_of(metric, **settings)
    if shown is None and isinstance(loss, str) and gate_rules is None:
        named = metric_of(loss, **settings)
        shown = named if named.is_named else None  # a raw loss is shown as one
    resolved_loss = loss_of(loss, **settings) if shown is None else shown.loss
    (resolved_loss if shown is None else shown).check_settings()
    if resolved_loss.at_close_only:
        raise InvalidSetting(
            "Answers of a function of all examples may reveal anything; boards use one at the "
            "close."
        )
    if gate_rules is not None and not resolved_loss.is_mean:
        raise InvalidSetting(
            f"A gate compares models example by example, and {resolved_loss.name} has no loss of "
            "one example. Metrics that have: accuracy, log_loss, brier, mae and mse."
        )
    declared = DeclaredColumns.read(columns)
    kind = parts["kind"] or (resolved_loss.label_kind if declared is not None else None)
    table = make_sample(
        labels,
        **{**parts, "kind": kind},
        labelled=resolved_loss.uses_labels,
        columns=declared,
        empty=resolved_loss.takes_empty,
    )
    resolved_loss = resolved_loss.with_inferred_classes(table.labels)
    scorer = Scorer(table, resolved_loss, columns=declared, may_be_labels=False)
    grouping = scorer.grouping
    effective_n = int(grouping.effective_n)
    chosen_mechanism = _choose_mechanism(mechanism, protection, scorer, budget, ladders)
    if chosen_mechanism.needs == "losses" and (
        grouping.weight is not None or not resolved_loss.is_mean
    ):
        raise InvalidSetting(
            f"{chosen_mechanism.name} compares losses one by one and supports neither weights nor "
            "statistics such as AUC."
        )
    if key is not None:
        Tape(key=key)  # refuse an invalid key before the file is created
    rules = {
        "questions": budget,
        "ladders": ladders,
        "beta": beta,
        "rows": len(table),
        "kind": table.kind,
        "worth": effective_n,
        "weighted": grouping.weight is not None,
        "zero_one": scorer.zero_one,
        # A gate on the same labels proves improvements itself; a statistic has no losses for it.
        **(
            {"proven": True}
            if mechanism is None and gate_rules is None and resolved_loss.is_mean
            else {}
        ),
        **({} if scorer.promise is None else {"promise": scorer.promise}),
        **({} if shown is None else {"metric": shown.describe()}),
        **({} if declared is None else {"columns": declared.describe()}),
        **({} if gate_rules is None else {"gate": gate_rules(scorer, chosen_mechanism)}),
    }
    file = GuardFile.resolve(
        path, key_file, loss=resolved_loss, mechanism=chosen_mechanism, environment=environment
    )
    return file.create(table, scorer, chosen_mechanism, rules, key), scorer, file


def _choose_mechanism(
    mechanism: Any, protection: str | None, scorer: Scorer, questions: int, ladders: int
) -> Mechanism:
    """Return a mechanism, by default a growing ladder for which all ladders may be one attacker's.

    The standard error of a mean of zeros and ones follows from the mean; that of other losses is
    often much smaller.
    """
    if mechanism is None:
        return GrowingLadder.calibrated(
            int(scorer.grouping.effective_n),
            questions,
            teams=ladders,
            accounts=ladders,
            protection="balanced" if protection is None else protection,
            scale="value" if scorer.loss.is_binary else "model",
        )
    if protection is not None:
        raise InvalidSetting("protection belongs to the default mechanism; leave one of them out.")
    return mechanism_of(mechanism)


def guard_file(
    path: Path | str,
    key_file: Path | str | None,
    loss: Any,
    mechanism: Any,
    environment: LedgerEnvironment | None,
) -> GuardFile:
    """Return the file at a path, with a custom loss or mechanism if it needs one."""
    resolved_loss = None if loss is None else loss_of(loss)
    return GuardFile.resolve(
        path, key_file, loss=resolved_loss, mechanism=mechanism, environment=environment
    )
