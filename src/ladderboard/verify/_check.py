"""Verify a bundle: recompute everything entry by entry, with one entry in memory at a time."""

from __future__ import annotations

import hashlib
import struct
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.errors import (
    BrokenLedger,
    InvalidState,
    LadderboardError,
    MissingDependency,
    StorageFailed,
)
from ladderboard.holdout import GateReplay
from ladderboard.ledger import (
    ChainHead,
    Commitment,
    GateSecret,
    broken_entry,
    decode,
    examples_in_sessions,
)
from ladderboard.losses import LOSSES
from ladderboard.losses import loss as loss_of
from ladderboard.mechanisms import MECHANISMS
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.verify._chain import BrokenLink, ChainReader, same_encoding
from ladderboard.verify._history import DuplicateChecker, HistoryChecker
from ladderboard.verify._rankings import FinalsChecker, check_finals, check_standings
from ladderboard.verify._receipts import SavedEvidence, WrongArgument
from ladderboard.verify._replay import (
    PossibleReleaseChecker,
    RecordChecker,
    Replay,
    decode_opened_secret,
)
from ladderboard.verify._result import CheckSummary, VerificationResult, describe_checks
from ladderboard.verify._risks import RiskChecker, check_risk, rescore_file
from ladderboard.verify._source import BundleReader, PublicLedger, open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from os import PathLike

    from numpy.typing import NDArray

    from ladderboard.holdout import AlignedPredictions
    from ladderboard.losses import Loss
    from ladderboard.mechanisms import Mechanism
    from ladderboard.verify._history import LedgerRules, ShownMetric
    from ladderboard.verify._rankings import RankingRows
    from ladderboard.verify._receipts import SavedReceipt
    from ladderboard.verify._replay import OpenedSecret
    from ladderboard.verify._risks import SubmittedFile

    ProgressCallback = Callable[[int, int | None], object]


_PROGRESS_INTERVAL = 500  # entries between two calls of on_progress


def verify_bundle(
    path: str | PathLike[str],
    *,
    heads: Iterable[str] = (),
    receipts: Iterable[SavedReceipt] = (),
    commitment: str | None = None,
    loss: Loss | None = None,
    mechanism: Mechanism | None = None,
    on_progress: ProgressCallback | None = None,
) -> VerificationResult:
    """Recompute a bundle, or check the chain of a public ledger.

    Raises ``BrokenLedger`` that names the first wrong entry and what is wrong with it.

    Parameters
    ----------
    path
        A bundle, or a public ledger with one entry per line.
    heads
        Head hashes that were saved earlier: each must be the hash of an entry.
    receipts
        Receipts of submissions that were saved earlier: each must match its entry.
    commitment
        The commitment that was announced before the first question: the first entry must hold it.
    loss, mechanism
        For a custom loss or mechanism. Code that a bundle names is never imported.
    on_progress
        Called now and then with the number of checked entries and, if known, their total.
    """
    checking = _Verification(
        SavedEvidence(heads, receipts, commitment), loss, mechanism, on_progress
    )
    with _translate_errors(checking), open_source(Path(path)) as source:
        return checking.verify(source)


class _Verification:
    """The state of one verification."""

    def __init__(
        self,
        evidence: SavedEvidence,
        loss: Loss | None,
        mechanism: Mechanism | None,
        on_progress: ProgressCallback | None,
    ) -> None:
        self.evidence = evidence
        self._custom, self._on_progress = (loss, mechanism), on_progress
        self.number: int | None = 0
        """The entry that is being checked; None after the last."""
        self.history: HistoryChecker | None = None
        self.releases: PossibleReleaseChecker | None = None
        self.records: RecordChecker | None = None
        self.replay: Replay | None = None
        self.risks: RiskChecker | None = None
        self.gate: GateReplay | None = None
        self.duplicates = DuplicateChecker()
        self.finals = FinalsChecker()
        self.scored = self.files = 0
        self._submission: AlignedPredictions | None = None
        self._last_digest = b""
        self._standings: RankingRows | None = None
        self._holdouts: list[dict[str, Any]] = []

    def verify(self, source: BundleReader | PublicLedger) -> VerificationResult:
        """Check everything and return the result."""
        try:
            return self._verify(source)
        except Exception:
            if self.replay is not None:
                self.replay.draw_checker.finish()  # names an earlier entry whose draws are wrong
            raise
        finally:
            if self.replay is not None:
                self.replay.draw_checker.close()

    def _verify(self, source: BundleReader | PublicLedger) -> VerificationResult:
        bundle = source if isinstance(source, BundleReader) else None
        if bundle is not None:
            self._holdouts = list(bundle.iter_holdouts())
            if bundle.header["labels"] is not bool(self._holdouts):
                raise BrokenLedger(
                    "The bundle states whether it holds labels, but the records do not match."
                )
        chain = ChainReader(None if bundle is None else bundle.header["book"])
        items = source.iter_entries()
        for number, (encoded, secret, file) in enumerate(items):
            self.number = number
            try:
                fields = chain.read_entry(encoded)
            except BrokenLink:
                last = None if bundle is None else bundle.header["head"]
                raise chain.explain_broken_link(encoded, next(items, (None,))[0], last) from None
            if self._on_progress is not None and not number % _PROGRESS_INTERVAL:
                self._on_progress(number, None if bundle is None else bundle.header["entries"])
            if self.evidence.has_hashes:
                self.evidence.compare_entry(number, chain.head.hex(), fields)
            history = self.history or self._check_opening(fields, bundle)
            self._check_entry(history, fields, secret, file)
        self.number = None
        if self.history is None:
            raise BrokenLedger("The file holds no entry.")
        if self.replay is not None:
            self.replay.draw_checker.finish()
        self.duplicates.check()
        head = ChainHead(chain.entries, chain.head)
        final = None if bundle is None else self._check_rankings(self.history, bundle, head)
        self.evidence.check_all_found(self.history.opening["book"], head.entries)
        if bundle is not None:
            bundle.check_end()
        return self._result(self.history, bundle, head, final)

    def _result(
        self,
        history: HistoryChecker,
        bundle: BundleReader | None,
        head: ChainHead,
        final: dict[str, Any] | None,
    ) -> VerificationResult:
        replay, risks, records = self.replay, self.risks, self.records
        summary = CheckSummary(
            entries=head.entries,
            questions=history.questions,
            looks=history.looks,
            verdicts=0 if self.gate is None else self.gate.looks,
            releases=0 if replay is None else replay.releases,
            draws=0 if replay is None else replay.draws,
            risks=self.scored,
            marks=0 if records is None else records.marks,
            marks_tested=0 if records is None else records.tested,
            unchanged=self.evidence.last_unchanged,
            opened=bundle is not None,
            labels=risks is not None and bool(risks.tables),
            files=self.files,
            custom_loss=risks is not None and risks.loss is None,
            custom_mechanism=replay is not None and replay.needs is None,
            standings=bundle is not None and bundle.standings is not None,
            finals=final is not None,
            finals_rescored=final is not None and self.scored == history.answers,
            board=history.rules.is_board,
            names=bundle is not None and bundle.names is not None,
            only_gate=history.rules.gate is not None and not history.rules.gate["guard"],
        )
        checked, unchecked = describe_checks(summary)
        rules = history.rules
        number = rules.find_ranking_metric(final=final is not None) if rules.is_board else 0
        return VerificationResult(
            of="ledger" if bundle is None else bundle.header["of"],
            book=history.opening["book"],
            entries=head.entries,
            head=head.hash.hex(),
            questions=history.questions,
            looks=history.looks,
            releases=summary.releases,
            risks=summary.risks,
            closed=history.closed is not None,
            unchanged=summary.unchanged,
            commitment=history.opening["commitment"],
            receipts=tuple(self.evidence.matched_receipts),
            metric=self._find_shown_metric(rules),
            ranked_by=rules.metrics[number or 0].title if rules.is_board else None,
            by_mean_rank=number is None,
            standings=None if bundle is None else self._standings,
            finals=final,
            names=None if bundle is None else bundle.names,
            disqualified=frozenset(history.disqualified),
            checked=checked,
            unchecked=unchecked,
        )

    def _find_shown_metric(self, rules: LedgerRules) -> ShownMetric | None:
        """Return how a board shows its first metric, or a guard its only one."""
        if not rules.is_board:
            return rules.guard_metric
        metric = rules.metrics[0]
        return metric.shown_with(_find_loss(metric.loss, self._custom[0]))

    def _check_opening(self, fields: dict[str, Any], bundle: BundleReader | None) -> HistoryChecker:
        """Check what the first entry commits to, and prepare the replay."""
        self.history = history = HistoryChecker(fields)
        self.evidence.check_commitment(fields["commitment"])
        loss, custom_mechanism = self._custom
        mechanism = _find_mechanism(fields["mechanism"], custom_mechanism)
        self.releases = PossibleReleaseChecker(mechanism, fields)
        if mechanism is not None and "proven" in fields["rules"]:
            self.records = RecordChecker(mechanism, fields)
        if bundle is None:
            return history
        if history.rules.is_board != (bundle.header["of"] == "board"):
            raise broken_entry(0, "the bundle's kind (board or guard) does not match")
        key, salt = bundle.key["key"], bundle.key["salt"]
        shown = Commitment("key", hashlib.sha256(key).digest(), salt).hash.hex()
        if shown != fields["key"]:
            raise broken_entry(0, "the noise key in the bundle is not the one that it commits to")
        examples = examples_in_sessions(fields["n"], fields["rules"])
        self.replay = Replay(mechanism, examples, key, bundle.header["entries"])
        if history.rules.gate is not None:
            self.gate = GateReplay(fields, mechanism)
        self.risks = RiskChecker(
            _find_loss(fields["loss"], loss),
            history.rules.is_board,
            history.rules.columns,
            tuple(_find_loss(metric.loss, None) for metric in history.rules.metrics[1:]),
            tuple(history.rules.live_metrics),
        )
        for holdout in self._holdouts:
            self.risks.add_labels(holdout)
        self.risks.check_commitment(0, 0, fields["holdout"])
        self.risks.check_description(history.rules.label_description)
        return history

    def _check_entry(
        self,
        history: HistoryChecker,
        fields: dict[str, Any],
        secret: bytes | None,
        file: SubmittedFile | None,
    ) -> None:
        """Check one entry, with its opened secret side and its file."""
        number, replay, risks = fields["number"], self.replay, self.risks
        self._check_public_fields(history, fields)
        if replay is None or risks is None:
            return
        kind = fields["kind"]
        if self.gate is not None:
            is_gate_entry = kind in {"look", "promoted"}
            self.gate.check_entry(fields, _decode_gate_secret(secret) if is_gate_entry else None)
            if is_gate_entry:
                return
        if kind == "question":
            opened = self._open_secret(number, secret)
            if "metric" in fields:
                losses = self._score_further(history, risks, fields, opened, file)
            else:
                losses = self._score(history, risks, fields, opened, file)
            replay.check_question(number, fields, opened, losses)
            self._check_history_of_question(history, risks, fields, opened, losses)
        elif secret is not None or file is not None:
            raise broken_entry(number, "it has a secret side or a file, which only questions have")
        elif kind == "ladder":
            replay.start_ladder()
        elif kind == "closed":
            replay.check_close(number, fields)
        elif kind == "amended":
            risks.check_commitment(number, history.epoch, history.rules.holdout)

    def _check_history_of_question(
        self,
        history: HistoryChecker,
        risks: RiskChecker,
        fields: dict[str, Any],
        opened: OpenedSecret,
        losses: NDArray[Any] | None,
    ) -> None:
        """Check a question against earlier ones: duplicates, and the record before it."""
        self.duplicates.add_question(
            fields["number"],
            fields["ladder"],
            fields["asker"],
            opened.submission,
            is_replay=history.is_repeat,
        )
        if self.records is not None:
            scorer = None if losses is None else risks.find_scorer(history.epoch)
            self.records.check_question(fields, losses, scorer)

    def _check_public_fields(self, history: HistoryChecker, fields: dict[str, Any]) -> None:
        history.check_entry(fields["number"], fields)
        if self.releases is not None:
            self.releases.check_entry(fields["number"], fields)
        if self.records is not None and fields["kind"] != "question":
            self.records.follow_entry(fields)

    def _open_secret(self, number: int, secret: bytes | None) -> OpenedSecret:
        """Return the opened secret side of a question; refuse one that is missing or malformed."""
        if secret is None:
            raise broken_entry(number, "its secret side is missing")
        try:
            opened = decode_opened_secret(secret)
        except ValueError:
            raise broken_entry(number, "its secret side is malformed") from None
        if opened.broken and opened.risk != 1:
            raise broken_entry(number, "its loss failed, and its risk is not 1")
        return opened

    def _score_further(
        self,
        history: HistoryChecker,
        risks: RiskChecker,
        fields: dict[str, Any],
        opened: OpenedSecret,
        file: SubmittedFile | None,
    ) -> NDArray[Any] | None:
        """Score the last submission by a further metric, if its file and labels are there."""
        if file is not None:
            raise broken_entry(fields["number"], "it has a file, which only the first metric has")
        if opened.submission != self._last_digest:
            raise broken_entry(fields["number"], "it is about another submission than the last")
        scorer = risks.find_scorer(history.epoch, metric=fields["metric"]) if risks.tables else None
        if scorer is None or self._submission is None:
            return None
        self.scored += 1
        return check_risk(fields["number"], scorer, self._submission, opened)

    def _score(
        self,
        history: HistoryChecker,
        risks: RiskChecker,
        fields: dict[str, Any],
        opened: OpenedSecret,
        file: SubmittedFile | None,
    ) -> NDArray[Any] | None:
        """Score a question's file again if labels are there; return the loss of every example."""
        self._submission, self._last_digest = None, opened.submission
        if file is None:  # it may have been lost before the close; the result says so
            return None
        self.files += 1
        scorer = risks.find_scorer(history.epoch) if risks.tables else None
        if scorer is None:
            return None
        max_file = history.rules.max_file
        submission, losses = rescore_file(fields["number"], scorer, opened, file, max_file=max_file)
        self._submission = submission
        self.scored += 1
        if file.selected:
            self.finals.score_selected(fields["asker"], file, submission, risks, history.rules)
        return losses

    def _check_rankings(
        self, history: HistoryChecker, bundle: BundleReader, head: ChainHead
    ) -> dict[str, Any] | None:
        """Check what comes after the entries, and return the final ranking."""
        stated = [bundle.header["entries"], bundle.header["head"]]
        if not same_encoding(stated, list(head)):
            raise BrokenLedger(
                "The bundle's header states another number of entries or another head."
            )
        if history.closed is None:
            raise BrokenLedger(
                "The ledger was not closed, so no secret side should be in the bundle."
            )
        bundle.read_rankings()
        self._standings = rows = check_standings(history, bundle.standings, bundle.names)
        risks = self.risks
        losses = [] if risks is None else [risks.loss, *risks.further]
        final = check_finals(history, bundle.finals, rows, losses, named=bundle.names is None)
        if risks is None or not risks.tables:
            return final
        if len(risks.tables) != history.epoch + 1:
            raise BrokenLedger("There are labels in the bundle that no entry commits to.")
        if final is None and risks.has_private:
            raise BrokenLedger(
                "There are private rows, but the closing entry commits to no final ranking."
            )
        if final is not None and self.scored == history.answers:
            self.finals.check(final, history, risks)
        return final


def _decode_gate_secret(secret: bytes | None) -> GateSecret | None:
    """Return the opened secret side of a look or a promotion; refuse other fields."""
    return None if secret is None else GateSecret(**decode(secret))


def _find_loss(described: dict[str, Any], custom: Loss | None) -> Loss | None:
    """Return the given or built-in loss, None for an unknown one; nothing is imported."""
    if custom is not None:
        if not same_encoding(custom.describe(), described):
            raise WrongArgument("The ledger was made with another loss than the one given.")
        return custom
    if described["loss"] not in LOSSES:
        return None
    builtin = loss_of(described)
    if not same_encoding(builtin.describe(), described):
        raise broken_entry(0, "its loss is not described in the canonical way")
    return builtin


def _find_mechanism(described: dict[str, Any], custom: Mechanism | None) -> Mechanism | None:
    if custom is not None:
        if not same_encoding(custom.describe(), described):
            raise WrongArgument("The ledger was made with another mechanism than the one given.")
        return custom
    if described["mechanism"] not in MECHANISMS:
        return None
    builtin = mechanism_of(described)
    if not same_encoding(builtin.describe(), described):
        raise broken_entry(0, "its mechanism is not described in the canonical way")
    return builtin


@contextmanager
def _translate_errors(checking: _Verification) -> Iterator[None]:
    """Turn errors that a damaged or forged file causes into ``BrokenLedger``."""
    try:
        yield
    except (BrokenLedger, InvalidState, MissingDependency, StorageFailed, WrongArgument):
        raise
    except LadderboardError as error:  # a setting in the file, such as an invalid key
        raise _malformed(checking.number, f"something in it cannot be used ({error})") from None
    except MemoryError:
        raise StorageFailed("There is not enough memory to check this file.") from None
    except OSError as error:
        raise StorageFailed(f"The file cannot be read to its end: {error.strerror}.") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
        struct.error,
    ):
        raise _malformed(
            checking.number, "it holds a value that Ladderboard never writes"
        ) from None


def _malformed(number: int | None, how: str) -> BrokenLedger:
    if number is None:
        return BrokenLedger(f"The records after the entries are not as they were written: {how}.")
    return broken_entry(number, how)
