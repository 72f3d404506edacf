"""The gate: paired verdicts about candidates, as many as its budget allows."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.bounds import (
    LookPrices,
    PairedEvidence,
    PairedTest,
    TestForm,
    certificate,
    read_count,
)
from ladderboard.errors import InvalidSetting, InvalidState
from ladderboard.holdout._export import iter_decrypted_entries
from ladderboard.holdout._guard import Holdout
from ladderboard.holdout._open_file import OpenFile, create_file, guard_file
from ladderboard.holdout._scorer import AlignedPredictions
from ladderboard.holdout._status import SHARED_NATS, Meter
from ladderboard.holdout._verdict import GateStatus, LookRecord, Verdict
from ladderboard.ledger import (
    EMPTY_CHAIN,
    GateSecret,
    GateState,
    LookDecision,
    ScoredLook,
    broken_entry,
    encode,
    state_changes,
)
from ladderboard.losses import metric as metric_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ladderboard.holdout._file import GuardFile
    from ladderboard.holdout._remote import RemoteGate
    from ladderboard.holdout._scorer import Scorer
    from ladderboard.ledger import Book, ChainState, LedgerEnvironment, RecordedLook
    from ladderboard.losses import Loss
    from ladderboard.mechanisms import Mechanism

# Logarithms may differ in their last bits between machines.
_PRICE_TOLERANCE = 1e-9


class Gate(OpenFile):
    """Labels behind a budget of looks: each says whether a candidate beats the incumbent.

    Made by :meth:`create` or :meth:`open`. Safe with threads and with several processes that open
    the file; it can be pickled, and unpickling opens the file again.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, ladderboard as lb
    >>> folder = tempfile.TemporaryDirectory()
    >>> labels = np.random.default_rng(0).integers(2, size=1000)
    >>> gate = lb.Gate.create(pathlib.Path(folder.name) / "gate.db", labels=labels, looks=200)
    >>> gate.promote(labels ^ (np.arange(1000) % 4 == 0))
    1
    >>> print(gate.check(labels ^ (np.arange(1000) % 8 == 0)))
    Better than the incumbent. 199 looks left.
    >>> print(gate.check(labels ^ (np.arange(1000) % 5 == 0)))
    Cannot tell. The two differ on 350 examples. "Better" needed 64 more wins than losses
    among them. The margin is 0, so "not worse" means "better". 198 looks left.
    >>> folder.cleanup()
    """

    def __init__(self, book: Book, scorer: Scorer, file: GuardFile) -> None:
        rules = book.opening["rules"]
        if "gate" not in rules:
            raise InvalidState(
                f"{file.path} is a guard's file: use lb.Holdout, or ladderboard guard."
            )
        super().__init__(book, scorer, file)
        self._test = paired_test(book.opening)
        self._margin: float = rules["gate"]["margin"]
        self._takes_predictions = self.takes == "predictions"
        self._scored_incumbent: tuple[bytes, NDArray[Any], NDArray[Any]] | None = None

    @classmethod
    def create(
        cls,
        path: Path | str,
        labels: Any = None,
        *,
        looks: int,
        margin: float = 0.0,
        beta: float = 0.05,
        scores: bool = False,
        worse: bool = False,
        loss: str | Loss | Any = "zero_one",
        metric: str | Any = None,
        columns: Any = None,
        ids: Any = None,
        classes: Any = None,
        group: Any = None,
        weight: Any = None,
        kind: Any = None,
        guard: bool = False,
        mechanism: str | Mechanism | Any = None,
        key_file: Path | str | None = None,
        key: bytes | None = None,
        environment: LedgerEnvironment | None = None,
    ) -> Gate:
        """Create a file that holds the labels and answers a number of looks.

        Parameters
        ----------
        path
            A new file; an existing one is refused.
        labels
            One per example; or a table, a frame or a file with a column ``label`` and optional
            columns ``id``, ``group`` and ``weight``. Not used with ``scores``.
        looks
            The budget.
        margin
            The usual margin of "not worse", in units of the loss; with 0 only a better candidate
            passes, or the incumbent's own predictions. Each look may have another one.
        beta
            The probability with which any verdict, of all looks together, may be false.
        scores
            Whether candidates come as scores in [0, 1] per id, pass or fail, from a harness.
        worse
            Whether "worse" is a verdict, too; then half of beta is for it.
        loss
            A loss, a metric that is one minus a loss, or their name.
        metric
            In place of ``loss``: a metric with a loss for each example, or its name.
        columns
            The names of columns in files: ``{"id": "image", "prediction": "label"}``.
        ids, classes, group, weight, kind
            As in ``Holdout.create``.
        guard
            Whether the file also answers the questions of a guard (``Holdout.open``). Looks and
            questions then share the budget and beta.
        mechanism
            The guard's mechanism.
        key_file, key, environment
            As in ``Holdout.create``.
        """
        looks = read_count("looks", looks)
        margin = read_margin(margin)
        if scores:
            if labels is not None and ids is None and not hasattr(labels, "read"):
                labels, ids = None, labels
            loss = "score"
        if metric is not None:
            chosen = metric_of(metric)
            chosen.check_settings()
            loss = chosen.loss
        return cls(
            *create_file(
                path,
                labels,
                budget=looks,
                ladders=1,
                loss=loss,
                columns=columns,
                parts={"ids": ids, "group": group, "weight": weight, "kind": kind},
                classes=classes,
                mechanism=mechanism,
                beta=beta,
                key_file=key_file,
                key=key,
                environment=environment,
                gate_rules=partial(
                    _gate_rules, looks=looks, margin=margin, worse=worse, guard=guard
                ),
            )
        )

    @staticmethod
    def connect(url: str, *, token: str | None = None) -> RemoteGate:
        """Return a gate served by ``ladderboard gate serve``, at its URL or Unix socket."""
        from ladderboard.holdout._remote import RemoteGate  # noqa: PLC0415 - loads HTTP

        return RemoteGate(url, token=token)

    def promote(self, predictions: Any, *, format: str | None = None) -> int:  # noqa: A002
        """Make a model the incumbent; return its number. It costs no look.

        Nothing changes if it is the incumbent already; with scores each call counts another one.
        """
        submission = self._scorer.read(predictions, format=format)
        return self._book.promote(
            submission.digest, submission.packed, even_if_equal=not self._takes_predictions
        ).incumbent

    def check(
        self,
        predictions: Any,
        *,
        margin: float | None = None,
        format: str | None = None,  # noqa: A002 - the word people use
    ) -> Verdict:
        """Compare a candidate with the incumbent: one look.

        A refusal costs nothing and changes nothing. The same predictions with the same incumbent
        and margin get the earlier verdict for free, and the incumbent's own predictions are not
        worse for free. Scores take a look each time, because whether they are equal depends on the
        labels. When the budget is spent, this raises ``BudgetSpent``.

        Parameters
        ----------
        predictions
            With ids in any order, or one per example in the holdout's order.
        margin
            The margin of "not worse"; the gate's own if not given. Choose it before the look.
        format
            The format of a file; detected if not given.
        """
        margin = self._margin if margin is None else read_margin(margin)
        submission = self._scorer.read(predictions, format=format)
        nonce = self._scorer.nonce()

        def find() -> RecordedLook | GateState | None:
            recorded, state = self._book.find_look(submission.digest, margin, nonce)
            return state if self._is_incumbent(submission, state) else recorded

        def look(score: Callable[[], NDArray[Any]]) -> RecordedLook | GateState:
            decide = partial(self._decide, submission=submission, score=score, margin=margin)
            return self._book.look(ScoredLook(submission.digest, margin, decide, nonce))

        outcome = self._answer(find, lambda: self._losses(submission), look)
        if isinstance(outcome, GateState):
            return self._verdict_on_incumbent(outcome, margin)
        return self._verdict(outcome)

    def _is_incumbent(self, submission: AlignedPredictions, state: GateState) -> bool:
        """Return whether predictions are the incumbent's own, for which no labels are needed.

        False for scores: whether those are equal is data.
        """
        return self._takes_predictions and submission.digest == state.submission

    def _verdict_on_incumbent(self, state: GateState, margin: float) -> Verdict:
        return Verdict(
            outcome="not_worse",
            look=0,
            remaining=self.remaining,
            differing=0,
            margin=margin,
            incumbent=state.incumbent,
            beta=self._test.beta,
        )

    def _losses(self, submission: AlignedPredictions) -> NDArray[Any]:
        return self._scorer.paired_losses(self._scorer.score(submission))

    def _decide(
        self,
        state: GateState,
        chain_state: ChainState,
        read_incumbent: Callable[[], bytes],
        *,
        submission: AlignedPredictions,
        score: Callable[[], NDArray[Any]],
        margin: float,
    ) -> LookDecision | None:
        """Return the verdict on predictions, in the transaction that records it.

        None for the incumbent's own.
        """
        if self._is_incumbent(submission, state):
            return None
        losses = score()
        nats = look_nats(self._book.mechanism, self._book.opening["rules"], state, chain_state)
        rival, rival_losses = self._incumbent(state, read_incumbent)
        differing = None
        if self._takes_predictions:
            differing = _count_differing(submission.compact, rival)
        test = self._test
        evidence = test.measure(
            rival_losses,
            losses,
            differing=differing,
            nats=nats,
            margin=margin,
            weight=self._scorer.grouping.weight,
        )
        needed = (None, None) if differing is None else test.required(differing, nats, margin)
        public = {
            "nats": nats,
            "options": test.options(margin, differing),
            "differing": differing,
            "needed": needed[0],
            "needed_not_worse": needed[1],
            "outcome": test.outcome(evidence, nats, margin),
        }
        return LookDecision(public, dict(sorted(evidence._asdict().items())))

    def _incumbent(
        self, state: GateState, read_packed: Callable[[], bytes]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the incumbent's predictions and losses; they are read and scored once."""
        scored = self._scored_incumbent
        if scored is None or scored[0] != state.submission:
            submission = AlignedPredictions.unpack(read_packed())
            scored = (state.submission, submission.compact, self._losses(submission))
            self._scored_incumbent = scored
        return scored[1], scored[2]

    def _verdict(self, recorded: RecordedLook) -> Verdict:
        fields = recorded.fields
        names = ("outcome", "look", "differing", "needed", "needed_not_worse", "margin")
        return Verdict(
            **{name: fields[name] for name in (*names, "incumbent", "nats")},
            remaining=self._meter(recorded.chain_state).remaining,
            beta=self._test.beta,
            again=recorded.repeated,
        )

    def _meter(self, chain_state: ChainState) -> Meter:
        return Meter(self._book.mechanism, self._book.opening["rules"], chain_state)

    @property
    def looks(self) -> int:
        """The budget."""
        return self._book.budget

    @property
    def margin(self) -> float:
        """The usual margin of "not worse"."""
        return self._margin

    def status(self) -> GateStatus:
        """Return everything public, with the history."""
        book = self._book
        chain_state, _, entries = book.snapshot()
        state, rules = book.gate_state(), book.opening["rules"]
        remaining = self._meter(chain_state).remaining
        return GateStatus(
            n=book.opening["n"],
            loss=book.opening["loss"],
            looks=book.budget,
            remaining=remaining,
            beta=rules["beta"],
            margin=self._margin,
            worse=self._test.worse,
            test=self._test.form,
            incumbent=state.incumbent,
            next_nats=look_nats(book.mechanism, rules, state, chain_state) if remaining else None,
            closed=chain_state.closed,
            history=tuple(
                LookRecord(**{name: fields[name] for name in LookRecord._fields})
                for fields in entries
                if fields["kind"] == "look"
            ),
            commitment=book.opening["commitment"],
            head=chain_state.head.hex(),
        )

    def verify_ledger(self) -> int:
        """Recompute every verdict from the secret side; return how many were verified."""
        questions = super().verify_ledger()
        replay = GateReplay(self._book.opening, self._book.mechanism)
        with self._book.storage.read_transaction(self._book.name) as view:
            for entry, secret in iter_decrypted_entries(self._book, view):
                replay.check_entry(entry.read(), secret if isinstance(secret, GateSecret) else None)
        return questions + replay.looks

    def close_for_good(self) -> None:
        """End all looks."""
        self._book.close()

    def __repr__(self) -> str:
        return f"Gate({str(self._file.path)!r}, remaining={self.remaining})"


def _count_differing(values: NDArray[Any], rival: NDArray[Any]) -> int:
    """Return on how many rows predictions differ; on all, if they have another form."""
    if values.shape != rival.shape or (values.dtype.kind in "iufb") != (rival.dtype.kind in "iufb"):
        return len(values)
    unequal = np.asarray(values != rival)
    rows = unequal if unequal.ndim == 1 else unequal.reshape(len(values), -1).any(axis=1)
    return int(np.count_nonzero(rows))


def _gate_rules(
    scorer: Scorer, mechanism: Mechanism, *, looks: int, margin: float, worse: bool, guard: bool
) -> dict[str, Any]:
    if guard:
        n = int(scorer.grouping.effective_n)
        counted = certificate(n, looks, 0, mechanism, zero_one=scorer.zero_one)
        if counted.nats is None:
            raise InvalidSetting(
                f"{mechanism.name} gives no guarantee together with a gate; use another "
                "mechanism, or guard=False."
            )
    constant = scorer.best_constant() if scorer.loss.uses_labels and margin else None
    if constant is not None and 0 < constant.risk <= margin:
        raise InvalidSetting(
            f'A margin of {margin:g} lets bad models pass as "not worse": a constant prediction '
            f"has a loss of only {constant.risk:.2g}. Give a smaller margin, in units of the loss; "
            "if equal candidates do not pass then, use more examples or a narrower range. "
            "(Keep this message private: it depends on the labels.)"
        )
    return {
        "margin": margin,
        "worse": bool(worse),
        "test": choose_test(scorer),
        "guard": bool(guard),
    }


def open_file(path: Path | str, *, key_file: Path | str | None = None) -> Gate | Holdout:
    """Open a file as what it is, a gate or a guard."""
    return _as_created(guard_file(path, key_file, None, None, None).open(), path, key_file)


def restore_file(
    path: Path | str,
    charge: int,
    *,
    copy: Path | str | None = None,
    key_file: Path | str | None = None,
) -> Gate | Holdout:
    """Continue with an old copy of a gate's or a guard's file; see ``OpenFile.restore``."""
    source = None if copy is None else Path(copy).absolute()
    file = guard_file(path, key_file, None, None, None)
    return _as_created(file.restore(charge, source), path, key_file)


def _as_created(
    opened: tuple[Book, Scorer], path: Path | str, key_file: Path | str | None
) -> Gate | Holdout:
    file = guard_file(path, key_file, None, None, None)
    book, scorer = opened
    return (Gate if "gate" in book.opening["rules"] else Holdout)(book, scorer, file)


def read_margin(value: Any) -> float:
    """Return a margin, or refuse it."""
    return _settings.number("margin", value, at_least=0, below=1)


def choose_test(scorer: Scorer) -> TestForm:
    """Return the test for a loss and a grouping; it depends on nothing else."""
    loss = scorer.loss
    if not scorer.zero_one or (loss.allowed is None and not loss.accepts_any):
        return "bets"
    return "sign" if len(loss.allowed or ()) == 2 else "convex"


def paired_test(opening: dict[str, Any]) -> PairedTest:
    """Return the test that a gate's first entry declares."""
    rules = opening["rules"]
    gate = rules["gate"]
    return PairedTest(gate["test"], opening["n"], rules["beta"], gate["worse"])


def look_nats(
    mechanism: Mechanism | None, rules: dict[str, Any], state: GateState, chain_state: ChainState
) -> float:
    """Return the price of the next look, from public values only.

    Each lost answer may have been a look with any verdict. If a guard answered questions from the
    same labels, what it released has its price, too.
    """
    lost = chain_state.charged
    nats = LookPrices(rules["questions"]).nats(state.looks + lost + 1, state.verdicts, lost=lost)
    if not rules["gate"]["guard"]:
        return nats
    nats += SHARED_NATS
    if chain_state.asked + lost > state.looks:
        nats += _guard_nats(mechanism, rules, chain_state)
    return nats


def _guard_nats(
    mechanism: Mechanism | None, rules: dict[str, Any], chain_state: ChainState
) -> float:
    """Return the price of everything that the guard released."""
    if mechanism is None:
        raise InvalidSetting("The price of a look after questions needs the guard's mechanism.")
    later = chain_state._replace(asked=chain_state.asked + 1)
    certificate = Meter(mechanism, rules, later).certificate(None)
    return math.inf if certificate.nats is None else certificate.nats + math.log(rules["beta"] / 2)


class GateReplay:
    """Recomputes the verdicts of a gate from its opened secret sides, entry by entry."""

    def __init__(self, opening: dict[str, Any], mechanism: Mechanism | None) -> None:
        self._rules, self._test, self._mechanism = opening["rules"], paired_test(opening), mechanism
        self._state, self._chain_state = GateState(), EMPTY_CHAIN
        self.looks = 0
        """How many verdicts were recomputed."""

    def check_entry(self, fields: dict[str, Any], secret: GateSecret | None) -> None:
        """Check an entry, a look or a promotion with its secret side, and count it."""
        number = fields["number"]
        if fields["kind"] in {"look", "promoted"}:
            mismatch = "its secret side is missing" if secret is None else ""
            if secret is not None:
                mismatch = secret.find_mismatch(fields) or self._find_problem(fields, secret)
                self._state = (
                    self._state.after_look(fields)
                    if fields["kind"] == "look"
                    else self._state.after_promotion(secret.submission)
                )
            if mismatch:
                raise broken_entry(number, mismatch)
        self._chain_state = self._chain_state._replace(**state_changes(self._chain_state, fields))

    def _find_problem(self, fields: dict[str, Any], secret: GateSecret) -> str:
        """Return what is wrong with a look or a promotion, or an empty text."""
        state = self._state
        if fields["kind"] == "promoted":
            return "" if fields["incumbent"] == state.incumbent + 1 else "its number is wrong"
        margin, nats, test = fields["margin"], fields["nats"], self._test
        price = look_nats(self._mechanism, self._rules, state, self._chain_state)
        evidence = PairedEvidence(**secret.content)
        stated = [fields["incumbent"], fields["look"], fields["options"]]
        look = state.looks + self._chain_state.charged + 1
        expected = [state.incumbent, look, test.options(margin, fields["differing"])]
        if encode(stated) != encode(expected) or not 0 <= margin < 1:
            return "its incumbent, its number, its margin or its options are wrong"
        if abs(nats - price) > _PRICE_TOLERANCE * (1 + price):
            return "its price does not follow from the looks before it"
        needed: tuple[int | None, int | None] = (None, None)
        if fields["differing"] is not None:
            needed = test.required(fields["differing"], nats, margin)
        if needed != (fields["needed"], fields["needed_not_worse"]):
            return "the net wins that it needed are wrong"
        nearby = (nats - _PRICE_TOLERANCE, nats, nats + _PRICE_TOLERANCE)
        outcomes = {test.outcome(evidence, near, margin) for near in nearby}
        if evidence.differing != fields["differing"] or fields["outcome"] not in outcomes:
            return "its verdict does not follow from its evidence"
        self.looks += 1
        return ""
