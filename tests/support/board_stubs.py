"""Stand-ins that a board needs: a clock and the content of its folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ladderboard.board import Rules
    from ladderboard.files import HoldoutTable


class ManualClock:
    """A clock that stands still until a test sets ``now``."""

    def __init__(self, now=1_800_000_000):
        self.now = now

    def __call__(self):
        return self.now


@dataclass
class FolderContent:
    """The content of a board's folder, without files."""

    rules: Rules
    table: HoldoutTable
    baselines: dict[str, Path] = field(default_factory=dict)
    people: tuple[str, ...] = ()
    data: dict[str, Path] = field(default_factory=dict)
