"""Runs games as tasks in this process, in several or on a cluster, and stores their results."""

from ladderboard.arena._runner._participants import (
    STANDARD_MECHANISMS,
    MechanismFactory,
    analyst_names,
    resolve_analysts,
    resolve_mechanisms,
)
from ladderboard.arena._runner._sweep import (
    ExperimentRun,
    available_cores,
    make_matches,
    parse_sizes,
    progress_bar,
    run,
)
from ladderboard.arena._runner._task import GameRow, Match, repetition_seed

__all__ = [
    "STANDARD_MECHANISMS",
    "ExperimentRun",
    "GameRow",
    "Match",
    "MechanismFactory",
    "analyst_names",
    "available_cores",
    "make_matches",
    "parse_sizes",
    "progress_bar",
    "repetition_seed",
    "resolve_analysts",
    "resolve_mechanisms",
    "run",
]
