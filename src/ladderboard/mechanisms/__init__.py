"""What is said about a risk.

A *mechanism* is a frozen description with a pure step: from a state, a question and its draws to
the next state and a release: a state machine without clock, disk or global random state.
``mechanism.start(n=...)`` gives a :class:`Session`, which holds the state, asks the tape and counts
questions. To write one of your own, subclass :class:`Mechanism` and run
``ladderboard.testing.check_mechanism`` on it.
"""

from ladderboard.mechanisms._base import Mechanism
from ladderboard.mechanisms._by_example import BootstrapLadder, ParameterFreeLadder
from ladderboard.mechanisms._calibration import Calibrated, calibrated_settings
from ladderboard.mechanisms._fixed_point import UNITS as UNITS
from ladderboard.mechanisms._fixed_point import WIDEST as WIDEST
from ladderboard.mechanisms._fixed_point import from_units as from_units
from ladderboard.mechanisms._fixed_point import nearest as nearest
from ladderboard.mechanisms._fixed_point import to_units as to_units
from ladderboard.mechanisms._grouping import Grouping
from ladderboard.mechanisms._ladder import Ladder, OneBit
from ladderboard.mechanisms._ladder import ends as ends
from ladderboard.mechanisms._registry import MECHANISMS, mechanism
from ladderboard.mechanisms._scores import Exact, Noisy, Rounded, Teller
from ladderboard.mechanisms._session import Session
from ladderboard.mechanisms._shaky_ladder import PaperSettings, ShakyLadder, paper_settings
from ladderboard.mechanisms._thresholdout import Thresholdout
from ladderboard.mechanisms._types import (
    Release,
    Releases,
    Seen,
    SeenMany,
    Setup,
    Step,
    StepMany,
    leaderboard_error,
    risk_of,
)
from ladderboard.mechanisms._types import read_vector as read_vector

__all__ = [
    "MECHANISMS",
    "BootstrapLadder",
    "Calibrated",
    "Exact",
    "Grouping",
    "Ladder",
    "Mechanism",
    "Noisy",
    "OneBit",
    "PaperSettings",
    "ParameterFreeLadder",
    "Release",
    "Releases",
    "Rounded",
    "Seen",
    "SeenMany",
    "Session",
    "Setup",
    "ShakyLadder",
    "Step",
    "StepMany",
    "Teller",
    "Thresholdout",
    "calibrated_settings",
    "leaderboard_error",
    "mechanism",
    "paper_settings",
    "risk_of",
]
