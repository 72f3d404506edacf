"""The guard: a holdout that may be asked as often as its budget allows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import BrokenLedger, InvalidRisk, InvalidSetting
from ladderboard.holdout._export import write_guard_bundle
from ladderboard.holdout._file import SAMPLE, GuardFile
from ladderboard.holdout._reply import Reply, format_reply
from ladderboard.holdout._sample import (
    decode_sample,
    describe_sample,
    make_sample,
    sample_digest,
)
from ladderboard.holdout._scorer import Scorer
from ladderboard.holdout._status import Meter, Status, Takes, check_ladder_name, takes_of
from ladderboard.ledger import (
    Book,
    Commitment,
    LedgerEnvironment,
    ScoredQuestion,
    SqliteStorage,
)
from ladderboard.losses import loss as loss_of
from ladderboard.mechanisms import ShakyLadder
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from ladderboard.bounds import Certificate
    from ladderboard.files import Limits
    from ladderboard.holdout._remote import RemoteHoldout
    from ladderboard.ledger import ChainHead
    from ladderboard.losses import Loss
    from ladderboard.mechanisms import Mechanism


class Holdout:
    """Labels behind a budget, in one file.

    Made by :meth:`create`, :meth:`open` or :meth:`connect`. Safe with threads and with several
    processes, each of which may open the file; it can be pickled, and is then opened again.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, ladderboard as lb
    >>> folder = tempfile.TemporaryDirectory()
    >>> labels = np.random.default_rng(0).integers(2, size=1000)
    >>> guard = lb.Holdout.create(pathlib.Path(folder.name) / "guard.db", labels=labels,
    ...                           loss="zero_one", questions=100, mechanism=lb.Ladder(step=0.02))
    >>> print(guard.ask(labels ^ (np.arange(1000) % 5 == 0)))
    The best is now 0.2; 99 questions left.
    >>> print(guard.ask(labels ^ (np.arange(1000) % 4 == 0)))
    The best stays 0.2; gains below about 0.02 may go unseen; 98 questions left.
    >>> folder.cleanup()
    """

    def __init__(self, book: Book, scorer: Scorer, file: GuardFile, ladder: str = "") -> None:
        self._book, self._scorer, self._file = book, scorer, file
        self._name = ladder

    @classmethod
    def create(
        cls,
        path: Path | str,
        labels: Any = None,
        *,
        questions: int,
        ladders: int = 1,
        loss: str | Loss | Any = "zero_one",
        ids: Any = None,
        classes: Any = None,
        group: Any = None,
        weight: Any = None,
        kind: Any = None,
        mechanism: str | Mechanism | Any = None,
        beta: float = 0.05,
        key_file: Path | str | None = None,
        key: bytes | None = None,
        environment: LedgerEnvironment | None = None,
    ) -> Holdout:
        """Make a file that holds the labels and will answer so many questions about them.

        Parameters
        ----------
        path
            A new file. What is there already is refused.
        labels
            One for each example; or a table, a frame or a file with a column ``label`` and, as
            wanted, ``id``, ``group`` and ``weight``. With ``loss="score"`` there are none.
        questions
            The budget, over all ladders.
        ladders
            How many ladders there may be: for each study, run or team that shall not have to beat
            the best of another. The first question on a ladder is answered nearly exactly, so more
            of them need coarser settings, and promise less. The first so many names that are asked
            on are taken.
        loss
            A loss, its name, or a function of (labels, predictions) that can be imported.
        ids
            Of the examples; predictions may then come in any order.
        classes
            The classes of the loss, where it takes them. They are public. With ``zero_one`` they
            are taken from the labels if not given, unless some have fewer than five labels;
            ``"any"`` accepts every prediction, which an attacker can use.
        group
            Which examples belong together: losses are averaged within a group, n counts groups.
        weight
            Of the examples; never computed from labels.
        kind
            Of the labels, ``"number"`` or ``"text"``; found out if not given.
        mechanism
            What answers; ``ShakyLadder.calibrated`` for the holdout's size, the budget and the
            number of ladders if not given.
        beta
            With which probability certificates may be false.
        key_file
            Encrypts the labels and everything else that is secret. It is made if it is not there.
        key
            Thirty-two bytes for the noise, from the operating system if not given.
        environment
            Clock and salts, for tests.
        """
        from ladderboard.bounds import read_beta, read_count  # noqa: PLC0415 - asking needs none

        questions, beta = read_count("questions", questions), read_beta(beta)
        ladders = _settings.integer("ladders", ladders, at_least=1, at_most=questions)
        found = loss_of(loss, **({} if classes is None else {"classes": classes}))
        parts = {"ids": ids, "group": group, "weight": weight, "kind": kind}
        table = make_sample(labels, **parts, labelled=found.uses_labels)
        found = found.with_inferred_classes(table.labels)
        scorer = Scorer(table, found)
        grouping = scorer.grouping
        worth = int(grouping.effective_n)
        answers = _mechanism(mechanism, worth, questions, ladders)
        if answers.needs == "losses" and grouping.weight is not None:
            raise InvalidSetting(f"{answers.name} compares losses one by one; it takes no weights.")
        if key is not None:
            Tape(key=key)  # refuses what is no key before there is a file
        rules = {
            "questions": questions,
            "ladders": ladders,
            "beta": beta,
            "rows": len(table),
            "kind": table.kind,
            "worth": worth,
            "weighted": grouping.weight is not None,
            "zero_one": scorer.zero_one,
        }
        file = GuardFile.at(path, key_file, loss=found, mechanism=answers, environment=environment)
        return cls(file.make(table, scorer, answers, rules, key), scorer, file)

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
    ) -> Holdout:
        """Open a file that ``create`` made.

        Labels need not be given; if they are, with what belongs to them, they must be the same.
        ``loss`` and ``mechanism`` are needed only where they are your own.
        """
        given = None
        if labels is not None or ids is not None:
            given = partial(make_sample, labels, ids=ids, group=group, weight=weight, kind=kind)
        file = _file(path, key_file, loss, mechanism, environment)
        return cls(*file.open(given), file)

    @staticmethod
    def connect(url: str, *, token: str | None = None) -> RemoteHoldout:
        """Return a guard that ``ladderboard guard serve`` keeps, at its URL or Unix socket."""
        from ladderboard.holdout._remote import RemoteHoldout  # noqa: PLC0415 - loads HTTP

        return RemoteHoldout(url, token=token)

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
    ) -> Holdout:
        """Go on with an old copy that was put back, and open it.

        With ``copy`` it is put back now; the file that was there is kept as ``FILE.replaced-N``.

        ``charge`` is how many questions may have been answered since the copy was made; they are
        taken off the budget, and the chain says so. The rest is as for :meth:`open`.
        """
        file = _file(path, key_file, loss, mechanism, environment)
        source = None if copy is None else Path(copy).absolute()
        return cls(*file.restore(charge, source), file)

    def ask(
        self,
        predictions: Any,
        *,
        training: float | None = None,
        format: str | None = None,  # noqa: A002 - the word people use
        ladder: str = "",
    ) -> Reply:
        """Ask about a model by its predictions: a file, an array, a list or a frame.

        A refusal costs nothing and changes nothing. The very same predictions again get the
        earlier answer and cost nothing. Past the budget there is ``BudgetSpent``.

        Parameters
        ----------
        predictions
            With ids in any order, or one for each example in the holdout's.
        training
            The model's mean loss on its training data, where the mechanism looks at it.
        format
            Of a file; found out if not given.
        ladder
            The name of another ladder than this one. If it is new, and as many as were declared
            are in use, there is ``TooManyLadders``.
        """
        if ladder:
            check_ladder_name(ladder)
        book = self._book
        if training is not None:
            training = _settings.number("training", training, at_least=0, at_most=1)
        name = ladder or self._name
        submission = self._scorer.read(predictions, training=training, format=format)
        # Before anything is scored: what is refused or known takes no longer for one label than
        # for another.
        outcome = book.find_previous_answer(submission.digest, name)
        if outcome is None:
            _check_training(book.mechanism, training)
            scored = self._scorer.score(submission)
            wants = book.mechanism.needs == "losses"
            outcome = book.ask(
                ScoredQuestion(
                    submission=submission.digest,
                    risk=scored.risk,
                    losses=self._scorer.group_losses(scored) if wants else None,
                    training=training,
                    broken=scored.broken,
                    ladder=name,
                )
            )
        release = outcome.release
        meter = Meter(book.mechanism, book.opening["rules"], outcome.chain_state)

        def certify() -> Certificate:
            if outcome.repeated:  # the best may be better by now
                return self._standing(name)
            return meter.certificate(release.value)

        return Reply(
            released=release.value,
            improved=release.improved,
            question=release.question,
            remaining=meter.remaining,
            reason=format_reply(release, meter, again=outcome.repeated),
            score=release.score,
            ladder=name,
            again=outcome.repeated,
            certify=certify,
        )

    def ladder(self, name: str) -> Holdout:
        """Return another ladder on the same holdout and budget; its first question starts it.

        For a second study, or another run of early stopping, that should not have to beat the best
        of the first. How many there may be was declared by ``create``; the certificate counts all
        of them together.
        """
        check_ladder_name(name)
        return type(self)(self._book, self._scorer, self._file, name)

    @property
    def ladders(self) -> int:
        """How many ladders there may be."""
        return int(self._book.max_ladders or 1)

    def check_ladder(self, name: str = "") -> None:
        """Raise ``TooManyLadders`` if a question on a ladder, by default this one, would."""
        self._book.check_ladder(name or self._name)

    def with_limits(self, limits: Limits) -> Holdout:
        """Return the same guard, for predictions that are no larger than these limits."""
        file = replace(self._file, limits=limits)
        return type(self)(self._book, self._scorer.with_limits(limits), file, self._name)

    @property
    def loss(self) -> Loss:
        """The loss, with its classes: what predictions may be."""
        return self._scorer.loss

    @property
    def takes(self) -> Takes:
        """What it is asked with: predictions, or scores where the loss is ``"score"``."""
        return takes_of(self._book.opening)

    @property
    def meter(self) -> Meter:
        """How many questions are allowed, were used and are left."""
        return Meter(self._book.mechanism, self._book.opening["rules"], self._book.chain_state())

    @property
    def remaining(self) -> int:
        """How many questions are left, over all ladders."""
        return self.meter.remaining

    @property
    def released(self) -> float | None:
        """The estimate that stands on this ladder; 1 before the first question."""
        return self._book.ladder_value(self._name)

    @property
    def certificate(self) -> Certificate:
        """What can be promised now about the best model asked on this ladder."""
        return self._standing(self._name)

    def _standing(self, ladder: str) -> Certificate:
        at, value = self._book.chain_state_and_value(ladder)
        rules = self._book.opening["rules"]
        return Meter(self._book.mechanism, rules, at).certificate(value)

    @property
    def head(self) -> str:
        """The hash of the ledger's last entry; keep it, and nobody can rewrite what came before."""
        return self._book.head().hash.hex()

    def status(self) -> Status:
        """Return everything that is public, with the history."""
        return Status.of(self._book)

    def check(self) -> int:
        """Recompute every release from the key and the secret side; return how many hold.

        Raises ``BrokenLedger`` that names what differs: the labels, the key, or an entry. Of a
        mechanism that looks at the losses of examples, which are not kept, hashes and states are
        checked, and the return is 0.
        """
        book = self._book
        sample = decode_sample(book.read_encrypted(SAMPLE))
        salt = book.read_encrypted("salt of the holdout")
        committed = Commitment("holdout", sample_digest(describe_sample(sample)), salt)
        if committed.hash.hex() != book.opening["holdout"]:
            raise BrokenLedger("The labels are not those that were committed to.")
        return book.check()

    def constant_risk(self) -> float | None:
        """Return the risk of the best constant prediction, for the owner only: it tells of labels.

        It costs no question, as nobody else hears it. None where the loss knows no constant.
        """
        return self._scorer.constant_risk()

    def backup(self, to: Path | str) -> None:
        """Copy the file while it is in use. Whoever goes on with the copy must ``restore`` it."""
        SqliteStorage(self._file.path).backup(to)

    def close(self) -> None:
        """Let go of the file in all threads, when they are done; the next use opens it again."""
        self._book.storage.close()

    def close_for_good(self) -> float | None:
        """End all questions; return this ladder's last estimate, also where it was kept back."""
        values = dict(zip(self._book.ladder_names(), self._book.close(), strict=True))
        return values.get(self._name, self.released)

    def reveal(self, out: Path | str, *, labels: bool = False) -> ChainHead:
        """Write what a guard kept secret into a bundle, for anybody to check; return the head.

        Only after ``close_for_good``. Without ``labels`` these stay as hidden as before.
        """
        return write_guard_bundle(self._book, out, labels=labels)

    def __repr__(self) -> str:
        named = f", ladder={self._name!r}" if self._name else ""
        return f"Holdout({str(self._file.path)!r}{named}, remaining={self.remaining})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (type(self), self._file.elsewhere(), self._name)


def _file(
    path: Path | str,
    key_file: Path | str | None,
    loss: Any,
    mechanism: Any,
    environment: LedgerEnvironment | None,
) -> GuardFile:
    found = None if loss is None else loss_of(loss)
    return GuardFile.at(path, key_file, loss=found, mechanism=mechanism, environment=environment)


def _reopen(cls: type[Holdout], file: GuardFile, ladder: str) -> Holdout:
    return cls(*file.open(), file, ladder)


def _mechanism(given: Any, n: int, questions: int, ladders: int) -> Mechanism:
    if given is None:
        return ShakyLadder.calibrated(n, questions, teams=ladders)
    return mechanism_of(given)


def _check_training(mechanism: Mechanism, training: float | None) -> None:
    """Refuse a training loss that is missing or not wanted, as the mechanism itself would."""
    if mechanism.needs_training and training is None:
        raise InvalidRisk(
            f"{mechanism.name} needs training=, the mean loss on the training data, in [0, 1]."
        )
    if training is not None and not mechanism.needs_training:
        raise InvalidSetting(f"{mechanism.name} does not look at training=; leave it out.")
