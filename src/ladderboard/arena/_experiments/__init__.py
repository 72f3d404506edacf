"""Experiments that write tables and figures to a directory."""

from ladderboard.arena._experiments._arena import arena_experiment
from ladderboard.arena._experiments._calibrated import calibrated_experiment
from ladderboard.arena._experiments._faithful import faithful_experiment
from ladderboard.arena._experiments._metrics import metrics_experiment
from ladderboard.arena._experiments._paper import paper_experiment, shifted_experiment
from ladderboard.arena._experiments._peers import peers_experiment
from ladderboard.arena._experiments._play import play_experiment
from ladderboard.arena._experiments._summary import PairSummary

__all__ = [
    "PairSummary",
    "arena_experiment",
    "calibrated_experiment",
    "faithful_experiment",
    "metrics_experiment",
    "paper_experiment",
    "peers_experiment",
    "play_experiment",
    "shifted_experiment",
]
