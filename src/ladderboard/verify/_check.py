"""The check: everything recomputed, entry by entry, in the memory of one."""

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
from ladderboard.ledger import ChainHead, Commitment, broken_entry
from ladderboard.losses import LOSSES
from ladderboard.losses import loss as loss_of
from ladderboard.mechanisms import MECHANISMS
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.verify._chain import Chain, Unlinked
from ladderboard.verify._history import Repeats, Walk
from ladderboard.verify._rankings import Selected, check_finals, check_standings
from ladderboard.verify._receipts import Kept, WrongGiven
from ladderboard.verify._replay import Replay, read_opened
from ladderboard.verify._result import Found, VerificationResult, tell
from ladderboard.verify._risks import Risks, score
from ladderboard.verify._source import Bundle, Lines, open_source
from ladderboard.verify._strict import same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from os import PathLike

    from numpy.typing import NDArray

    from ladderboard.losses import Loss
    from ladderboard.mechanisms import Mechanism
    from ladderboard.verify._rankings import Rows
    from ladderboard.verify._receipts import SavedReceipt
    from ladderboard.verify._replay import Opened
    from ladderboard.verify._risks import File

    ProgressCallback = Callable[[int, int | None], object]


_OFTEN = 500  # entries between two words to who watches


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
    """Recompute a bundle, or follow the public side of a ledger.

    Raises ``BrokenLedger`` that names the first entry that differs, and how.

    Parameters
    ----------
    path
        A bundle, or a ledger with an entry a line.
    heads
        Hashes of last entries, kept from before: the chain must lead through them.
    receipts
        Receipts of submissions, kept from before: each must open its entry.
    commitment
        What was announced before the first question: the first entry must commit to the same.
    loss, mechanism
        Where they are the owner's own. Nothing that a bundle names is imported.
    on_progress
        Hears now and then how many entries were checked, and of how many, if that is known.
    """
    checking = _Checking(Kept(heads, receipts, commitment), loss, mechanism, on_progress)
    with _as_we_write_it(checking), open_source(Path(path)) as source:
        return checking.run(source)


class _Checking:
    """One check under way."""

    def __init__(
        self,
        kept: Kept,
        loss: Loss | None,
        mechanism: Mechanism | None,
        on_progress: ProgressCallback | None,
    ) -> None:
        self.kept = kept
        self._own, self._on_progress = (loss, mechanism), on_progress
        self.number: int | None = 0
        """The entry that is looked at; None after the last."""
        self.walk: Walk | None = None
        self.replay: Replay | None = None
        self.risks: Risks | None = None
        self.repeats = Repeats()
        self.selected = Selected()
        self.scored = self.filed = 0
        self._standings: Rows | None = None
        self._held: list[dict[str, Any]] = []

    def run(self, source: Bundle | Lines) -> VerificationResult:
        """Do all of it."""
        bundle = source if isinstance(source, Bundle) else None
        if bundle is not None:
            self._held = list(bundle.holdouts())
            if bundle.head["labels"] is not bool(self._held):
                raise BrokenLedger("The labels that the bundle speaks of are not there.")
        chain = Chain(None if bundle is None else bundle.head["book"])
        items = source.items()
        for number, (form, secret, file) in enumerate(items):
            self.number = number
            try:
                fields = chain.take(form)
            except Unlinked:
                last = None if bundle is None else bundle.head["head"]
                raise chain.blame(form, next(items, (None,))[0], last) from None
            if self._on_progress is not None and not number % _OFTEN:
                self._on_progress(number, None if bundle is None else bundle.head["entries"])
            if self.kept.any:
                self.kept.see(number, chain.head.hex(), fields)
            walk = self.walk or self._open(fields, bundle)
            self._take(walk, fields, secret, file)
        self.number = None
        if self.walk is None:
            raise BrokenLedger("There is no entry in it.")
        self.repeats.end()
        head = ChainHead(chain.entries, chain.head)
        final = None if bundle is None else self._end(self.walk, bundle, head)
        self.kept.end(self.walk.opening["book"], head.entries)
        if bundle is not None:
            bundle.whole()
        return self._verified(self.walk, bundle, head, final)

    def _verified(
        self, walk: Walk, bundle: Bundle | None, head: ChainHead, final: dict[str, Any] | None
    ) -> VerificationResult:
        replay, risks = self.replay, self.risks
        found = Found(
            entries=head.entries,
            questions=walk.asked,
            releases=0 if replay is None else replay.releases,
            draws=0 if replay is None else replay.draws,
            risks=self.scored,
            unchanged=self.kept.last,
            opened=bundle is not None,
            labels=risks is not None and bool(risks.tables),
            files=self.filed,
            own_loss=risks is not None and risks.loss is None,
            own_mechanism=replay is not None and replay.needs is None,
            standings=bundle is not None and bundle.standings is not None,
            finals=final is not None,
            finals_again=final is not None and self.scored == walk.asked,
            board=walk.rules.is_board,
        )
        checked, unchecked = tell(found)
        return VerificationResult(
            of="ledger" if bundle is None else bundle.head["of"],
            book=walk.opening["book"],
            entries=head.entries,
            head=head.hash.hex(),
            questions=walk.asked,
            releases=found.releases,
            risks=found.risks,
            closed=walk.closed is not None,
            unchanged=found.unchanged,
            commitment=walk.opening["commitment"],
            receipts=tuple(self.kept.told),
            standings=None if bundle is None else self._standings,
            finals=final,
            disqualified=frozenset(walk.disqualified),
            checked=checked,
            unchecked=unchecked,
        )

    def _open(self, fields: dict[str, Any], bundle: Bundle | None) -> Walk:
        """Begin with what the first entry commits to."""
        self.walk = walk = Walk(fields)
        self.kept.open(fields["commitment"])
        if bundle is None:
            return walk
        if walk.rules.is_board != (bundle.head["of"] == "board"):
            raise broken_entry(0, "the bundle is of something else than it")
        key, salt = bundle.key["key"], bundle.key["salt"]
        shown = Commitment("key", hashlib.sha256(key).digest(), salt).hash.hex()
        if shown != fields["key"]:
            raise broken_entry(0, "the noise key in the bundle is not the one that it commits to")
        loss, mechanism = self._own
        self.replay = Replay(_mechanism(fields["mechanism"], mechanism), fields["n"], key)
        self.risks = Risks(_loss(fields["loss"], loss), walk.rules.is_board)
        for each in self._held:
            self.risks.add(each)
        self.risks.committed(0, 0, fields["holdout"])
        self.risks.described(walk.rules.opened)
        return walk

    def _take(
        self, walk: Walk, fields: dict[str, Any], secret: bytes | None, file: File | None
    ) -> None:
        """Take one entry more, with what was opened of it."""
        number, replay, risks = fields["number"], self.replay, self.risks
        walk.take(number, fields)
        if replay is None or risks is None:
            return
        kind = fields["kind"]
        if kind == "question":
            opened = self._opened(number, secret)
            self.repeats.take(
                number, fields["ladder"], fields["asker"], opened.submission, again=walk.is_again
            )
            losses = None  # a file may have been lost before the close; what that costs is said
            if file is not None:
                losses = self._score(walk, risks, fields, opened, file)
            replay.question(number, fields, opened, losses)
        elif secret is not None or file is not None:
            raise broken_entry(number, "it has a secret side or a file, which only questions have")
        elif kind == "ladder":
            replay.start()
        elif kind == "closed":
            replay.close(number, fields)
        elif kind == "amended":
            risks.committed(number, walk.epoch, walk.rules.holdout)

    def _opened(self, number: int, secret: bytes | None) -> Opened:
        """Return what was opened of a question, and see that nothing lacks."""
        if secret is None:
            raise broken_entry(number, "its secret side is missing")
        try:
            opened = read_opened(secret)
        except ValueError:
            raise broken_entry(number, "its secret side is not as we write it") from None
        if opened.broken and opened.risk != 1:
            raise broken_entry(number, "its loss broke down, and 1 was not taken for its risk")
        return opened

    def _score(
        self, walk: Walk, risks: Risks, fields: dict[str, Any], opened: Opened, file: File
    ) -> NDArray[Any] | None:
        """Score a question's file again, if it can be; return the losses of examples."""
        self.filed += 1
        scorer = risks.scorer(walk.epoch) if risks.tables else None
        if scorer is None:
            return None
        largest = walk.rules.largest
        submission, losses = score(fields["number"], scorer, opened, file, largest=largest)
        self.scored += 1
        if file.selected:
            self.selected.add(fields["asker"], file, submission, risks)
        return losses

    def _end(self, walk: Walk, bundle: Bundle, head: ChainHead) -> dict[str, Any] | None:
        """Check what comes after the entries."""
        told = bundle.head
        if not same([told["entries"], told["head"]], list(head)):
            raise BrokenLedger("The ledger in the bundle does not end where the bundle says.")
        if walk.closed is None:
            raise BrokenLedger("The ledger was not closed, so nothing of it should be opened.")
        bundle.end()
        self._standings = rows = check_standings(walk, bundle.standings)
        risks = self.risks
        final = check_finals(walk, bundle.finals, rows, None if risks is None else risks.loss)
        if risks is None or not risks.tables:
            return final
        if len(risks.tables) != walk.epoch + 1:
            raise BrokenLedger("There are labels in the bundle that no entry commits to.")
        if final is None and risks.has_private:
            raise BrokenLedger("There are private rows, and the close commits to no final ranking.")
        if final is not None and self.scored == walk.asked:
            self.selected.check(final, walk, risks)
        return final


def _loss(described: dict[str, Any], given: Loss | None) -> Loss | None:
    """Return the loss: one of the house, or the owner's own as it was given; never imported."""
    if given is not None:
        if not same(given.describe(), described):
            raise WrongGiven("The ledger was made with another loss than the one given.")
        return given
    if described["loss"] not in LOSSES:
        return None
    found = loss_of(described)
    if not same(found.describe(), described):
        raise broken_entry(0, "its loss is not described as we write it")
    return found


def _mechanism(described: dict[str, Any], given: Mechanism | None) -> Mechanism | None:
    if given is not None:
        if not same(given.describe(), described):
            raise WrongGiven("The ledger was made with another mechanism than the one given.")
        return given
    if described["mechanism"] not in MECHANISMS:
        return None
    found = mechanism_of(described)
    if not same(found.describe(), described):
        raise broken_entry(0, "its mechanism is not described as we write it")
    return found


@contextmanager
def _as_we_write_it(checking: _Checking) -> Iterator[None]:
    """Refuse what cannot be read: somebody wrote it by hand, or it is damaged."""
    try:
        yield
    except (BrokenLedger, InvalidState, MissingDependency, StorageFailed, WrongGiven):
        raise
    except LadderboardError as error:  # a setting in the file, such as a key that is none
        raise _strange(checking.number, f"something in it cannot be used ({error})") from None
    except MemoryError:
        raise StorageFailed("There is not enough memory to check it.") from None
    except OSError as error:
        raise StorageFailed(f"It cannot be read to its end: {error.strerror}.") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
        struct.error,
    ):
        raise _strange(checking.number, "it holds something that we do not write") from None


def _strange(number: int | None, how: str) -> BrokenLedger:
    if number is None:
        return BrokenLedger(f"What follows the entries is not as it was written: {how}.")
    return broken_entry(number, how)
