"""A board's folder: ``board.yaml``, the holdout, and files that must be gradable."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ladderboard.board._folder_table import read_table
from ladderboard.board._rules import Noted, Rules, read_rules
from ladderboard.errors import InvalidInput, InvalidRules
from ladderboard.files import Roster, read_predictions
from ladderboard.holdout import is_zero_one, sample_digest, write_sample
from ladderboard.ledger import digest
from ladderboard.mechanisms import Setup

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.files import HoldoutTable

__all__ = ["BoardFolder", "read_folder"]

_RULES = "board.yaml"
_SUFFIXES = ("csv", "tsv", "txt", "parquet", "pq", "arrow", "feather", "jsonl", "ndjson")
_PACKED = ("", ".gz", ".zip")


@dataclass(frozen=True, eq=False)
class BoardFolder:
    """What a board is made of. The organiser's: it holds the labels.

    ``table`` has every row, its ``split`` spelled public, private or ignored (None: all are
    public). ``sample`` is the sample submission, if there is one; ``baselines`` are the files of
    those that are asked, by name, in the order of the rules. ``derived`` says that the classes in
    the rules were not declared, but taken from the labels or the sample submission.
    """

    path: Path
    rules: Rules
    table: HoldoutTable
    sample: Path | None
    baselines: dict[str, Path]
    derived: bool = False

    @property
    def public(self) -> NDArray[np.bool_]:
        """Which rows the leaderboard looks at."""
        if self.table.split is None:
            return np.ones(len(self.table), np.bool_)
        return np.asarray(self.table.split == "public")

    @property
    def private(self) -> NDArray[np.bool_]:
        """Which rows the final ranking looks at."""
        if self.table.split is None:
            return np.zeros(len(self.table), np.bool_)
        return np.asarray(self.table.split == "private")

    def part(self, which: Literal["public", "private"]) -> HoldoutTable:
        """Return the rows of one split, in their order."""
        return self.table.where(self.public if which == "public" else self.private)

    @property
    def worth(self) -> int:
        """How many independent examples the public part is worth: groups, fewer with weights."""
        return int(self.part("public").grouping.effective_n)

    @property
    def zero_one(self) -> bool:
        """Whether every public risk is a multiple of 1/n."""
        return is_zero_one(self.rules.loss, self.part("public").grouping)

    def digest(self) -> bytes:
        """Return a hash of everything that decides what this board will do.

        It is made from the labels without salt: whoever has it can try guesses. Keep it.
        """
        asked = {name: hashlib.sha256(path.read_bytes()).digest()
                 for name, path in self.baselines.items()}  # fmt: skip
        sample = sample_digest(write_sample(self.table))
        return digest("board", {"rules": self.rules.describe(), "sample": sample, "asked": asked})

    def __repr__(self) -> str:
        return f"BoardFolder({str(self.path)!r}, {self.table!r})"


def read_folder(path: Path | str) -> BoardFolder:
    """Read a board's folder.

    Raises
    ------
    InvalidRules
        With everything that is wrong, in the rules and in the files, in ``problems``.
    """
    folder = Path(path)
    noted = Noted()
    if not folder.is_dir():
        noted.add("not_a_folder", f"{str(path)!r} must be a folder with {_RULES} in it.")
        noted.refuse_if_any()
    rules = _rules(folder, noted)
    holdout = _holdout(folder, noted)
    table = None if holdout is None else read_table(folder / holdout, rules, noted)
    sample = _sample(folder, noted)
    baselines: dict[str, Path] = {}
    for each in () if rules is None else rules.baselines:
        if each.file is not None and _inside(folder, each.file, noted):
            baselines[each.name] = folder / each.file
    noted.refuse_if_any()
    assert rules is not None  # noqa: S101 - nothing was noted
    assert table is not None  # noqa: S101 - same
    loss = rules.loss.with_classes_of(table.labels, _sample_values(sample, rules, table))
    derived, rules = loss != rules.loss, replace(rules, loss=loss)
    found = BoardFolder(folder, rules, table, sample, baselines, derived)
    _check_mechanism(found, noted)
    noted.refuse_if_any()
    return found


def _rules(folder: Path, noted: Noted) -> Rules | None:
    if not _inside(folder, _RULES, noted):
        return None
    try:
        text = (folder / _RULES).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        noted.add("encoding", f"{_RULES} must be UTF-8; it is not at byte {error.start}.")
        return None
    except OSError as error:
        noted.add("not_a_file", f"{_RULES} cannot be read: {error.strerror}.", key=_RULES)
        return None
    try:
        return read_rules(text, where=_RULES, slug=folder.resolve().name)
    except InvalidRules as error:
        noted.found += [(0, each) for each in error.problems]
    return None


def _holdout(folder: Path, noted: Noted) -> str | None:
    """Return the name of the holdout's file, which there must be one of."""
    names = [f"holdout.{suffix}{packed}" for suffix in _SUFFIXES for packed in _PACKED]
    found = [each for each in names if (folder / each).exists() or (folder / each).is_symlink()]
    if len(found) == 1:
        return found[0] if _inside(folder, found[0], noted) else None
    if found:
        noted.add("several_files", f"there must be one holdout; there are {', '.join(found)}.")
    else:
        said = "there must be a holdout.csv with the columns id and label, or the same as .parquet."
        noted.add("missing_file", said, key="holdout.csv")
    return None


def _sample(folder: Path, noted: Noted) -> Path | None:
    names = [f"sample_submission.{suffix}{packed}" for suffix in _SUFFIXES for packed in _PACKED]
    for each in names:
        if (folder / each).exists() or (folder / each).is_symlink():
            return folder / each if _inside(folder, each, noted) else None
    return None


def _sample_values(sample: Path | None, rules: Rules, table: HoldoutTable) -> Any:
    """Return what a sample submission predicts, None if it cannot be read: a check says why."""
    if sample is None or not rules.loss.labelled:
        return None
    try:
        return read_predictions(sample, Roster.of(table), rules.loss, limits=rules.files.limits)
    except InvalidInput:
        return None


def _inside(folder: Path, name: str, noted: Noted) -> bool:
    """Note a file that is not there, or whose link leads out of the folder."""
    path = folder / name
    try:
        real = path.resolve()
    except (OSError, RuntimeError):  # links that lead in a circle
        real = Path("/")
    if not real.is_relative_to(folder.resolve()):
        noted.add("outside", f"{name} must lie in the folder; its link leads out of it.", key=name)
    elif not real.is_file():
        noted.add("missing_file", f"{name} must be a file in the folder; there is none.", key=name)
    else:
        return True
    return False


def _check_mechanism(folder: BoardFolder, noted: Noted) -> None:
    """Note a mechanism that cannot work with this holdout."""
    mechanism = folder.rules.mechanism_for(folder.worth)
    grouping = folder.part("public").grouping
    if mechanism.needs == "losses" and grouping.weight is not None:
        said = f"{mechanism.name} compares losses one by one; it takes no weights."
        noted.add("bad_value", said, key="mechanism")
    try:
        mechanism.check(Setup(grouping.n, 0.0, 1.0))
    except ValueError as error:
        noted.add("bad_value", str(error), key="mechanism")
