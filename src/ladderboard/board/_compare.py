"""A folder beside the board that was made from it, and corrected labels beside those of now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.board._amend import refuse_unlabelled
from ladderboard.board._board import kept_sample
from ladderboard.board._folder_table import read_table
from ladderboard.board._rules import Noted
from ladderboard.holdout import read_sample

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ladderboard.board._board import Board
    from ladderboard.board._folder import BoardFolder
    from ladderboard.board._rules import Rules
    from ladderboard.files import HoldoutTable

__all__ = ["Differences", "changes_between", "differences", "labels_changed", "read_corrected"]

_COLUMNS = ("ids", "split", "group", "weight")


@dataclass(frozen=True)
class Differences:
    """How a folder differs from a board: rules as (folder, board) by key, and the holdout."""

    rules: dict[str, tuple[Any, Any]]
    labels: int
    columns: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.rules or self.labels or self.columns)

    @property
    def sentences(self) -> list[str]:
        """What differs, in words; of labels only how many."""
        said = [
            f"{key} is {_shown(here)} in the folder and {_shown(there)} on the board"
            for key, (here, there) in self.rules.items()
        ]
        if self.columns:
            said.append(f"the rows of the holdout differ in {', '.join(self.columns)}")
        if self.labels:
            said.append(f"{self.labels:,} label{'s differ' if self.labels > 1 else ' differs'}")
        return said


def differences(board: Board, folder: BoardFolder, *, first: bool = False) -> Differences:
    """Return how a folder differs from a board as it is now, or as it was at the ``first``."""
    row = board.row()
    there: Mapping[str, Any]
    there = board.book.opening["rules"]["board"] if first else board.rules_of(row).describe()
    here = folder.rules.describe()
    rules = {key: (here.get(key), there.get(key)) for key in {**there, **here}
             if here.get(key) != there.get(key)}  # fmt: skip
    if folder.derived and "loss" in rules and _same_but_classes(*rules["loss"]):
        del rules["loss"]
    before = read_sample(board.book.kept(kept_sample(0 if first else row.epoch)))
    columns = tuple(name for name in _COLUMNS if not _same(before, folder.table, name))
    labels = 0 if "ids" in columns else labels_changed(before, folder.table)
    return Differences(rules, labels, columns)


def changes_between(before: Rules, after: Rules) -> dict[str, Any]:
    """Return what of the rules differs, as :meth:`Rules.amended` takes it."""
    old, new = before.describe(), after.describe()
    changes: dict[str, Any] = {}
    for key in {**old, **new}:
        value, was = new.get(key), old.get(key)
        if value == was:
            continue
        if key == "loss" and not _declared(value) and _same_but_classes(value, was):
            continue  # taken from the labels when the board was made
        if isinstance(value, dict) and isinstance(was, dict):
            # Only what differs: some of the rest may not be named in an amendment.
            changes[key] = {each: part for each, part in value.items() if part != was.get(each)}
        else:
            changes[key] = value
    return changes


def _declared(loss: Any) -> bool:
    return loss.get("classes") is not None


def _same_but_classes(one: Any, other: Any) -> bool:
    return {**one, "classes": None} == {**other, "classes": None}


def read_corrected(path: Path, rules: Rules) -> HoldoutTable:
    """Return a holdout's file, read as that of a board's folder is."""
    refuse_unlabelled(rules)
    noted = Noted()
    table = read_table(path, rules, noted)
    noted.refuse_if_any()
    assert table is not None  # noqa: S101 - nothing was noted
    return table


def labels_changed(before: HoldoutTable, after: HoldoutTable) -> int:
    """Return how many labels differ between two tables of the same rows."""
    if before.labels.shape != after.labels.shape:
        return max(len(before), len(after))
    differ = np.asarray(before.labels != after.labels)
    return int(np.count_nonzero(differ.reshape(len(differ), -1).any(axis=1)))


def _same(before: HoldoutTable, after: HoldoutTable, name: str) -> bool:
    old, new = getattr(before, name), getattr(after, name)
    if old is None or new is None:
        return old is new
    return len(old) == len(new) and list(old) == list(new)


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
