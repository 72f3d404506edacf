"""Changes to a running board: pausing it, amending its rules, and correcting its labels."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.board._access import check_permission, recount_pooled
from ladderboard.board._folder import read_table
from ladderboard.board._model import RECORD, RecordRow
from ladderboard.board._people import (
    NAMELESS_VISIBILITIES,
    disambiguate_team_names,
    move_invitations_with_deadline,
)
from ladderboard.board._repository import (
    ENDED_STATUSES,
    clear_releases,
    freeze_standings,
    insert,
    list_best_submissions,
    read_board,
    read_board_and_team,
    sample_key,
    to_json,
    update_board,
    update_submission,
    update_team,
)
from ladderboard.board._rules import SECRET_VISIBILITIES, RuleProblems, warn_of_amendment
from ladderboard.board._submissions import open_stored_predictions
from ladderboard.board._webhooks import queue_event
from ladderboard.errors import InvalidLabels, InvalidSetting, NotOpen
from ladderboard.holdout import decode_sample, describe_sample, encode_sample, sample_digest
from ladderboard.ledger import Commitment, Entry, digest, write_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from ladderboard.board._access import Caller
    from ladderboard.board._board import BoardContext
    from ladderboard.board._folder import BoardFolder
    from ladderboard.board._model import BoardRow, SubmissionRow
    from ladderboard.board._rules import Rules
    from ladderboard.board._submissions import Sandbox
    from ladderboard.files import HoldoutTable
    from ladderboard.holdout import AlignedPredictions
    from ladderboard.ledger import BookTransaction, ReadView, WriteView

_MAX_SHOWN = 160
_COLUMNS = ("ids", "split", "group", "weight")
_UNSHARED_LADDERS = 2  # of one attacker: with more, steps depend on other teams


class Amendments:
    """Changes that an organiser may make after the start; the ledger records each of them."""

    def __init__(self, board: BoardContext) -> None:
        self._board = board

    def pause(self, caller: Caller) -> None:
        """Stop accepting submissions until :meth:`resume`."""
        check_permission(caller, "run")

        def record_pause(transaction: BookTransaction) -> None:
            view, row = self._open_for_change(transaction)
            if row.status == "open":
                transaction.append_entry("paused", {})
                update_board(view, status="paused")
                queue_event(self._board, transaction, "paused")

        self._board.queue.run(record_pause)

    def resume(self, caller: Caller, charge: int | None = None) -> None:
        """Accept submissions again, also after an interrupted close, which revealed nothing.

        After a restore, ``charge`` is how many questions may have been answered and lost.
        """
        check_permission(caller, "run")
        if charge is not None and (type(charge) is not int or charge < 0):
            raise InvalidSetting("charge must be 0 or more submissions.")

        def record_resume(transaction: BookTransaction) -> None:
            view = transaction.view
            row = read_board(view)
            if row.status in {"closed", "moved"}:
                raise NotOpen(f"The board is {row.status}; it accepts no more submissions.")
            if row.status == "open":
                if charge:
                    raise InvalidSetting(
                        "The board is open. Pause it before you charge submissions."
                    )
                return
            if charge is None and needs_charge(view, row):
                raise InvalidSetting(
                    "This board was restored from a copy. Give charge: how many submissions may "
                    "have been answered since the copy was made."
                )
            charged = charge or 0
            spent = transaction.chain_state.asked + transaction.chain_state.charged
            if charged > self._board.rules_of(row).questions - spent:
                raise InvalidSetting("charge exceeds the remaining submissions.")
            transaction.append_entry(
                "resumed", {"charged": charged}, charged=transaction.chain_state.charged + charged
            )
            update_board(view, status="open")
            if charged:
                recount_pooled(view, self._board.rules_of(row), transaction.chain_state)

        self._board.queue.run(record_resume)

    def _open_for_change(self, transaction: BookTransaction) -> tuple[WriteView, BoardRow]:
        view = transaction.view
        row = read_board(view)
        if row.status in ENDED_STATUSES:
            raise NotOpen(f"The board is {row.status}; it accepts no more submissions.")
        return view, row

    def amend(self, caller: Caller, changes: Mapping[str, Any]) -> Rules:
        """Change deadlines, limits, budget, texts or visibility; return the new rules.

        Only the visibility can change after the close.
        """
        check_permission(caller, "run")

        def apply_amendment(transaction: BookTransaction) -> Rules:
            view = transaction.view
            row = read_board(view)
            if row.status == "moved":
                raise NotOpen("The board has moved; nothing about it can change here.")
            if row.status in ENDED_STATUSES and set(changes) != {"visibility"}:
                raise NotOpen(f"The board is {row.status}; only its visibility can change.")
            before = self._board.rules_of(row)
            after = before.amended(
                changes, used=transaction.chain_state.asked + transaction.chain_state.charged
            )
            if after.teams < row.teams:
                raise InvalidSetting(f"There are {row.teams:,} teams already.")
            if after == before:
                return after
            if (
                after.visibility in SECRET_VISIBILITIES
                and before.visibility not in SECRET_VISIBILITIES
                and row.status not in ENDED_STATUSES
            ):
                self._refuse_if_sharing(before)
            self._append_amendment(transaction, after, _changed_rules(before, after))
            horizon = {"horizon": row.horizon, "seen_epoch": row.seen_epoch}
            if after.visibility == "frozen" != row.visibility:
                horizon = {"horizon": transaction.chain_state.entries, "seen_epoch": row.epoch}
                freeze_standings(view)
            if (
                row.visibility in NAMELESS_VISIBILITIES
                and after.visibility not in NAMELESS_VISIBILITIES
            ):
                disambiguate_team_names(view)
            move_invitations_with_deadline(view, transaction.now, before.deadline, after.deadline)
            update_board(
                view,
                rules=to_json(after.describe()),
                visibility=after.visibility,
                amended=row.amended + 1,
                **horizon,
            )
            recount_pooled(view, after, transaction.chain_state)
            return after

        return self._board.queue.run(apply_amendment)

    def warnings(self, changes: Mapping[str, Any]) -> list[str]:
        """Return what these changes would take from teams, for the organiser to confirm first."""
        with self._board.reading() as view:
            row, state = read_board(view), view.chain_state()
        before = self._board.rules_of(row)
        if row.status in ENDED_STATUSES:
            return []
        after = before.amended(changes, used=state.asked + state.charged)
        return warn_of_amendment(before, after, self._board.book.environment.clock())

    def _refuse_if_sharing(self, rules: Rules) -> None:
        """Refuse to hide what others do if it shows in each team's own numbers."""
        if self._board.book.mechanism.shared_ladders:
            # Each account has a ladder for every live metric.
            accounts = _UNSHARED_LADDERS // rules.answers
            remedy = f", or accounts: {accounts}" if accounts else ""
            raise InvalidSetting(
                "The visibility cannot change to hidden or frozen: on this board a team could "
                "infer other teams' results from its own answers. Declare the "
                f"visibility when you create the board{remedy}."
            )

    def _append_amendment(
        self,
        transaction: BookTransaction,
        rules: Rules,
        changes: dict[str, Any],
        holdout: str | None = None,
    ) -> None:
        """Append an entry with the changes and the commitment to the new state."""
        opening = self._board.book.opening
        decided = {
            "n": opening["n"],
            "loss": opening["loss"],
            "mechanism": opening["mechanism"],
            "rules": {
                **opening["rules"],
                "questions": rules.questions,
                "board": rules.describe(),
            },
            "holdout": holdout or self._holdout_commitment(transaction),
            "key": opening["key"],
        }
        fields: dict[str, Any] = {"changes": changes}
        if holdout is not None:
            fields["holdout"] = holdout
        transaction.append_entry(
            "amended", {**fields, "commitment": digest("opening", decided).hex()}
        )

    def _holdout_commitment(self, transaction: BookTransaction) -> str:
        """Return the commitment to the current labels."""
        kept_hash = transaction.view.get_value("holdout of now")
        return self._board.book.opening["holdout"] if kept_hash is None else kept_hash.decode()

    def correct_labels(
        self,
        caller: Caller,
        table: HoldoutTable,
        *,
        replay: str = "best",
        sandbox: Sandbox | None = None,
    ) -> int:
        """Correct labels: start a new epoch with new ladders, within the same budget.

        ``replay`` is which submissions are asked again: ``"best"``, the one behind each team's
        release, or ``"none"``. They count as questions; their number is returned. If interrupted,
        call it again with the same labels to continue. ``sandbox`` parses uploaded files that an
        older version stored.
        """
        check_permission(caller, "run")
        if replay not in {"best", "none"}:
            raise InvalidSetting('replay must be "best" or "none".')
        board = self._board
        row = board.row()
        if row.status == "restored":
            raise NotOpen(
                "The board was restored from a copy. Resume it first: ladderboard board resume "
                f"{board.slug} --charge N"
            )
        refuse_if_unlabelled(board.rules_of(row))
        before = board.epoch_of(row).table
        _check_only_labels_differ(before, table)
        if row.epoch and describe_sample(before) == describe_sample(
            table
        ):  # the last call was interrupted
            self.pause(caller)  # if it was resumed since: replays are not limited
            count = replay_submissions(
                board, row.epoch - 1, commit=None, replay=replay, sandbox=sandbox
            )
            self.resume(caller)
            return count
        board.rules_of(row).loss.read_labels(table.labels)
        salt, epoch = board.book.environment.salt(), row.epoch + 1
        holdout = Commitment("holdout", sample_digest(describe_sample(table)), salt).hash.hex()

        def apply_correction(transaction: BookTransaction) -> str:
            view, now = self._open_for_change(transaction)
            if now.epoch != row.epoch:
                raise InvalidSetting(
                    "Labels were corrected at the same time. Read the board again."
                )
            rules = board.rules_of(now)
            self._append_amendment(transaction, rules, {"labels": epoch}, holdout)
            board.book.store_encrypted(view, f"sample {epoch}", encode_sample(table))
            board.book.store_encrypted(view, f"salt of the holdout {epoch}", salt)
            view.set_value("holdout of now", holdout.encode())
            update_board(view, epoch=epoch, best=None, amended=now.amended + 1)
            clear_releases(view)
            if now.status == "open":  # replays come before new submissions
                transaction.append_entry("paused", {})
                update_board(view, status="paused")
            return now.status

        count = replay_submissions(
            board,
            row.epoch,
            commit=lambda: board.queue.run(apply_correction),
            replay=replay,
            sandbox=sandbox,
        )
        if row.status == "open":
            self.resume(caller)
        return count


def needs_charge(view: ReadView, row: BoardRow) -> bool:
    """Return whether a board was restored and waits for its charge.

    After an interrupted close the status is ``closing``, so the ledger decides.
    """
    if row.status != "closing":
        return row.status == "restored"
    for number in reversed(range(view.chain_state().entries)):
        fields = Entry(next(iter(view.entries(number, number + 1)))).read()
        if fields["kind"] == "restored":
            return not fields["charged"]
        if fields["kind"] in {"question", "resumed", "opened"}:
            break
    return False


def refuse_if_unlabelled(rules: Rules) -> None:
    """Refuse to correct the labels of a board that takes scores."""
    if rules.takes == "scores":
        raise InvalidSetting(
            "This board takes scores, so it has no labels to correct. Submit wrong scores again, "
            "as another submission."
        )


def _changed_rules(before: Rules, after: Rules) -> dict[str, Any]:
    old, new = before.describe(), after.describe()
    changed = [key for key in {**old, **new} if new.get(key) != old.get(key)]
    return {key: json.loads(to_json(new.get(key))) for key in changed}


def _check_only_labels_differ(before: HoldoutTable, after: HoldoutTable) -> None:
    """Refuse a table that differs in anything but the labels."""
    if before.kind != after.kind or before.labels.shape != after.labels.shape:
        raise InvalidLabels("Corrected labels must be of the same kind, for the same rows.")
    for name in ("ids", "split", "group", "weight"):
        old, new = getattr(before, name), getattr(after, name)
        if (old is None) != (new is None) or (
            old is not None and _column_digest(old) != _column_digest(new)
        ):
            raise InvalidLabels(
                f"Only labels can be corrected, in the order of the first file: {name} differ."
            )


def _column_digest(values: Any) -> bytes:
    if not isinstance(values, np.ndarray):
        values = np.array(list(values), dtype=object)
    return digest("column", write_array(values))


def replay_submissions(
    board: BoardContext,
    epoch: int,
    *,
    commit: Callable[[], str] | None,
    replay: str,
    sandbox: Sandbox | None = None,
) -> int:
    """Start the next epoch with ``commit``, then ask submissions again; return how many.

    Without ``commit`` the epoch has started already, and only teams missing from it are replayed.
    ``sandbox`` parses uploaded files that an older version stored.
    """
    submissions: list[SubmissionRow] = []
    with board.reading() as view:
        row, state = read_board(view), view.chain_state()
        if replay == "best":
            submissions = list_best_submissions(view, epoch)
    remaining = board.rules_of(row).questions - state.asked - state.charged
    if len(submissions) > remaining:
        raise InvalidSetting(
            f"{len(submissions)} submissions would be scored again, but only {remaining} "
            "are left in the budget. Raise it first."
        )
    with open_stored_predictions(board, row, sandbox) as read:
        for submission in submissions:  # fail before anything changes
            read(submission)
        if commit is not None:
            commit()
        for submission in submissions:
            _replay_one(board, submission.team, submission.number, read(submission))
    return len(submissions)


def _replay_one(
    board: BoardContext, team: int, number: int, submission: AlignedPredictions
) -> None:
    with board.reading() as view:
        row, team_row = read_board_and_team(view, team)
    questions = board.score(row, team_row, submission)

    def record_replay(transaction: BookTransaction) -> None:
        view = transaction.view
        now = read_board(view)
        if board.book.read_duplicate(view, questions[0]) is not None:
            return
        outcome = transaction.answer(questions[0], budget=board.rules_of(now).questions)
        for question in questions[1:]:
            transaction.answer(question)
        release, time = outcome.release, transaction.chain_state.time
        update_submission(
            view,
            team,
            number,
            entry=outcome.entry_number,
            epoch=now.epoch,
            value=release.value,
            score=release.score,
            improved=release.improved,
            question=release.question,
            proven=release.proven,
        )
        update_board(view, replayed=now.replayed + 1)
        recount_pooled(view, board.rules_of(now), transaction.chain_state)
        if release.improved:
            update_team(view, team, released=release.value, since=time, proven=release.proven)
            if release.value is not None and (now.best is None or release.value < now.best):
                update_board(view, best=release.value)
                record = RecordRow(
                    entry=outcome.entry_number,
                    epoch=now.epoch,
                    time=time,
                    team=team,
                    value=release.value,
                    proven=release.proven,
                )
                insert(view, RECORD, record)

    board.queue.run(record_replay)


@dataclass(frozen=True)
class FolderDifferences:
    """How a folder differs from a board: rules as (folder, board) by key, and the holdout."""

    rules: dict[str, tuple[Any, Any]]
    labels: int
    columns: tuple[str, ...]

    def amended_since(self, first: FolderDifferences) -> list[str]:
        """Return the rules that were amended and that the folder has as they were at first."""
        return [
            name
            for key, pair in self.rules.items()
            if key not in first.rules
            for name, _, _ in differing_parts(key, *pair)
        ]

    def __bool__(self) -> bool:
        return bool(self.rules or self.labels or self.columns)

    @property
    def sentences(self) -> list[str]:
        """The differences in words; of labels only the number."""
        lines = [
            f"{name} is {_quote_difference(in_folder, on_board)} in the folder and "
            f"{_quote_difference(on_board, in_folder)} on the board"
            for key, pair in self.rules.items()
            for name, in_folder, on_board in differing_parts(key, *pair)
        ]
        if self.columns:
            lines.append(f"the rows of the holdout differ in {', '.join(self.columns)}")
        if self.labels:
            lines.append(f"{self.labels:,} label{'s differ' if self.labels > 1 else ' differs'}")
        return lines


def compare_with_folder(
    board: BoardContext, folder: BoardFolder, *, first: bool = False
) -> FolderDifferences:
    """Return how a folder differs from the board, now or as it was at ``first``."""
    row = board.row()
    board_rules: Mapping[str, Any]
    board_rules = board.book.opening["rules"]["board"] if first else board.rules_of(row).describe()
    folder_rules = folder.rules.describe()
    rules = {
        key: (folder_rules.get(key), board_rules.get(key))
        for key in {**board_rules, **folder_rules}
        if folder_rules.get(key) != board_rules.get(key)
    }
    if folder.derived and "loss" in rules and _equal_but_classes(*rules["loss"]):
        del rules["loss"]
    before = decode_sample(board.book.read_encrypted(sample_key(0 if first else row.epoch)))
    columns = tuple(name for name in _COLUMNS if not _same_column(before, folder.table, name))
    labels = 0 if "ids" in columns else count_changed_labels(before, folder.table)
    return FolderDifferences(rules, labels, columns)


def diff_rules(before: Rules, after: Rules) -> dict[str, Any]:
    """Return the rules that differ, in the form that :meth:`Rules.amended` takes."""
    old, new = before.describe(), after.describe()
    changes: dict[str, Any] = {}
    for key in {**old, **new}:
        value, old_value = new.get(key), old.get(key)
        if value == old_value:
            continue
        if key == "loss" and not _declares_classes(value) and _equal_but_classes(value, old_value):
            continue  # taken from the labels when the board was created
        if isinstance(value, dict) and isinstance(old_value, dict):
            # Only the differences: an amendment may not name some of the other keys.
            changes[key] = {
                name: part for name, part in value.items() if part != old_value.get(name)
            }
        else:
            changes[key] = value
    if not changes.keys().isdisjoint({"questions", "teams"}):
        changes["per_team"] = after.per_team  # else an equal part would follow them
    return changes


def _declares_classes(loss: Any) -> bool:
    return loss.get("classes") is not None


def _equal_but_classes(loss: Any, other: Any) -> bool:
    return {**loss, "classes": None} == {**other, "classes": None}


def read_corrected_labels(path: Path, rules: Rules) -> HoldoutTable:
    """Read a holdout file with corrected labels, as in a board's folder."""
    refuse_if_unlabelled(rules)
    problems = RuleProblems()
    return problems.require(read_table(path, rules, problems, rules.columns))


def count_changed_labels(before: HoldoutTable, after: HoldoutTable) -> int:
    """Return how many labels differ between two tables of the same rows."""
    if before.labels.shape != after.labels.shape:
        return max(len(before), len(after))
    differ = np.asarray(before.labels != after.labels)
    return int(np.count_nonzero(differ.reshape(len(differ), -1).any(axis=1)))


def _same_column(before: HoldoutTable, after: HoldoutTable, name: str) -> bool:
    old, new = getattr(before, name), getattr(after, name)
    if old is None or new is None:
        return old is new
    return len(old) == len(new) and list(old) == list(new)


def differing_parts(name: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the parts of a rule that differ, by the names that people write.

    >>> list(differing_parts("phases", [{"name": "a", "end": "x"}], [{"name": "a", "end": "y"}]))
    [('end', 'x', 'y')]
    >>> list(differing_parts("window", {"questions": 1, "days": 2}, {"questions": 3, "days": 2}))
    [('window.submissions', 1, 3)]
    """
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            if one.get(key) != other.get(key):
                yield from differing_parts(f"{name}.{key}", one.get(key), other.get(key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            if pair[0] != pair[1]:
                yield from differing_parts(f"{name}[{index}]", *pair)
    else:
        name = re.sub(r"\bquestions$", "submissions", re.sub(r"^loss\b", "metric", name))
        yield re.sub(r"^phases\[\d+\]\.", "", name), one, other


def _quote_difference(value: Any, other: Any) -> str:
    """Return a value whole; of a long text the part where it begins to differ."""
    text, other_text = str(value), str(other)
    if len(text) <= _MAX_SHOWN:
        return _settings.safe_repr(value) if isinstance(value, str) else text
    pairs = enumerate(zip(text, other_text, strict=False))
    same = next((index for index, (one, two) in pairs if one != two), len(other_text))
    start = max(same - _MAX_SHOWN // 4, 0)
    part = text[start : start + _MAX_SHOWN]
    return f"{'...' * (start > 0)}{part}{'...' * (start + _MAX_SHOWN < len(text))}"
