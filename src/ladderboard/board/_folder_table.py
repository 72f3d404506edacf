"""The holdout of a board: splits by their names, groups in one piece, labels that fit the loss."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidInput, InvalidLabels
from ladderboard.files import HoldoutTable, Limits, listed, many, read_holdout
from ladderboard.losses import Absolute, Pinball, Squared

if TYPE_CHECKING:
    from pathlib import Path

    from ladderboard.board._rules import Noted, Rules
    from ladderboard.losses import Loss

__all__ = ["SPLITS", "read_table"]

SPLITS = ("public", "private", "ignored")


def read_table(path: Path, rules: Rules | None, noted: Noted) -> HoldoutTable | None:
    """Return the holdout's table with its splits spelled plainly; note whatever is wrong."""
    name = path.name
    try:
        table = read_holdout(
            path,
            kind=None if rules is None else _kind(rules.loss),
            limits=Limits(bytes=2**40),
            labelled=rules is None or rules.loss.labelled,
        )
    except InvalidInput as error:
        for each in error.problems or ():
            noted.found.append((0, replace(each, message=f"{name}: {each.message}")))
        if not error.problems:
            noted.add("labels", f"{name}: {error}", key=name)
        return None
    if table.ids is None:
        noted.add("missing_column", f"{name}: a board's holdout needs a column id.", key="id")
    table = _with_splits(table, name, noted)
    _check_groups(table, name, noted)
    if rules is not None:
        _check_rules(table, rules, name, noted)
    return table


def _kind(loss: Loss) -> Any:
    """Return what labels must be for a loss; None where it takes either."""
    if isinstance(loss, Absolute | Squared | Pinball):
        return "number"
    declared = getattr(loss, "classes", None)
    classes = declared if isinstance(declared, tuple) else ()
    texts = {isinstance(each, str) for each in classes}
    return None if len(texts) != 1 else "text" if texts.pop() else "number"


def _with_splits(table: HoldoutTable, name: str, noted: Noted) -> HoldoutTable:
    """Return the table with Public and PUBLIC as public, and so on."""
    if table.split is None:
        return table
    words, which = np.unique(table.split, return_inverse=True)
    plain = [str(each).strip().casefold() for each in words.tolist()]
    other = [word for word, each in zip(words.tolist(), plain, strict=True) if each not in SPLITS]
    if other:
        said = f"{name}: split must be public, private or ignored; there is {listed(other)}."
        noted.add("unknown_split", said, key="split")
    elif "public" not in plain:
        noted.add("unknown_split", f"{name}: no row is public, so nothing could be asked.",
                  key="split")  # fmt: skip
    return replace(table, split=np.array(plain, dtype=table.split.dtype)[which])


def _check_groups(table: HoldoutTable, name: str, noted: Noted) -> None:
    """Note groups that lie in several splits: what is learned of one would tell of the other."""
    if table.group is None or table.split is None:
        return
    groups, of = np.unique(table.group, return_inverse=True)
    _, first = np.unique(of, return_index=True)
    torn = np.unique(of[table.split != table.split[first][of]])
    if len(torn):
        said = f"{many(len(torn), 'group')} in two splits: {listed(groups[torn].tolist())}"
        noted.add("torn_group", f"{name}: a group must lie in one split; {said}.", key="group")


def _check_rules(table: HoldoutTable, rules: Rules, name: str, noted: Noted) -> None:
    """Note what the rules ask of the holdout and it does not have."""
    try:
        rules.loss.read_labels(table.labels)
    except InvalidLabels as error:
        noted.add("labels", f"{name}: {error}", key="label")
    except InvalidInput as error:  # a loss of the organiser's own
        noted.add("labels", f"{name}: the loss refused the labels: {error}", key="label")
    private = table.split is not None and bool((table.split == "private").any())
    if private:
        return
    end = f"{name} has none. Add a column split with public and private."
    if rules.ladder == "board":
        said = "ladder: board needs a private split for the final ranking, as only records of the "
        noted.add("no_private", f"{said}whole board are told before; {end}", key="ladder")
    if rules.finals is not None:
        noted.add("no_private", f"finals need a private split to rank by; {end}", key="finals")
