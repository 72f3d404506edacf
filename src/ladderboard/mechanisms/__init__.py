"""What is said about a risk.

A *mechanism* is a frozen description with a pure step: from a state, a question and its draws to
the next state and a release. One state machine a file, no clock, no disk, no global random state.
``mechanism.start(n=...)`` gives a :class:`Session`, which holds the state, asks the tape and counts
questions. To write one of your own, subclass :class:`Mechanism` and run
``ladderboard.testing.check_mechanism`` on it.
"""

from ladderboard.mechanisms._bootstrap import BootstrapLadder
from ladderboard.mechanisms._calibrated import Calibrated, calibrated_settings
from ladderboard.mechanisms._climb import ends as ends
from ladderboard.mechanisms._error import leaderboard_error
from ladderboard.mechanisms._exact import Exact
from ladderboard.mechanisms._fixed import UNITS as UNITS
from ladderboard.mechanisms._fixed import WIDEST as WIDEST
from ladderboard.mechanisms._fixed import from_units as from_units
from ladderboard.mechanisms._fixed import nearest as nearest
from ladderboard.mechanisms._fixed import to_units as to_units
from ladderboard.mechanisms._grouping import Grouping
from ladderboard.mechanisms._ladder import Ladder
from ladderboard.mechanisms._mechanism import Mechanism
from ladderboard.mechanisms._noisy import Noisy
from ladderboard.mechanisms._one_bit import OneBit
from ladderboard.mechanisms._paper import PaperSettings, paper_settings
from ladderboard.mechanisms._parameter_free import ParameterFreeLadder
from ladderboard.mechanisms._registry import MECHANISMS, mechanism
from ladderboard.mechanisms._release import Release, Releases
from ladderboard.mechanisms._rounded import Rounded
from ladderboard.mechanisms._session import Session
from ladderboard.mechanisms._shaky_ladder import ShakyLadder
from ladderboard.mechanisms._step import Seen, SeenMany, Setup, Step, StepMany, risk_of
from ladderboard.mechanisms._teller import Teller
from ladderboard.mechanisms._thresholdout import Thresholdout
from ladderboard.mechanisms._vector import read_vector as read_vector

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
