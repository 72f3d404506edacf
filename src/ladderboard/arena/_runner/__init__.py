"""Games as tasks with a stable key, and who plays them: one process, several or a cluster."""

from ladderboard.arena._runner._entrants import (
    LINEUP,
    Maker,
    analyst_names,
    read_analysts,
    read_mechanisms,
)
from ladderboard.arena._runner._run import matches, read_sizes, run
from ladderboard.arena._runner._sweep import Study, cores, progress_bar
from ladderboard.arena._runner._task import Match, Row, row_seed

__all__ = [
    "LINEUP",
    "Maker",
    "Match",
    "Row",
    "Study",
    "analyst_names",
    "cores",
    "matches",
    "progress_bar",
    "read_analysts",
    "read_mechanisms",
    "read_sizes",
    "row_seed",
    "run",
]
