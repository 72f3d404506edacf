"""Mechanisms: rules that decide what is released about a risk.

A *mechanism* is a frozen description with a pure step: from a state, a question and its draws to
the next state and a release. It is a state machine without clock, disk or global random state.
``mechanism.start(n=...)`` returns a :class:`Session`, which holds the state, draws from the tape
and counts questions. To write your own, subclass :class:`Mechanism` and run
``ladderboard.testing.check_mechanism`` on it.
"""

from ladderboard.mechanisms._base import Mechanism
from ladderboard.mechanisms._base import declared_transcript as declared_transcript
from ladderboard.mechanisms._base import why_uncounted as why_uncounted
from ladderboard.mechanisms._by_example import BootstrapLadder, ParameterFreeLadder
from ladderboard.mechanisms._fixed_point import MAX_MAGNITUDE as MAX_MAGNITUDE
from ladderboard.mechanisms._fixed_point import UNITS as UNITS
from ladderboard.mechanisms._fixed_point import Grouping
from ladderboard.mechanisms._growing import PROTECTIONS as PROTECTIONS
from ladderboard.mechanisms._growing import GrowingLadder
from ladderboard.mechanisms._ladder import Ladder, OneBit
from ladderboard.mechanisms._registry import MECHANISMS, mechanism
from ladderboard.mechanisms._scores import Exact, Noisy, Rounded, ScoreMechanism
from ladderboard.mechanisms._session import (
    ComparisonSettings,
    Observation,
    Observations,
    Release,
    Releases,
    Session,
    Setup,
    Step,
    StepMany,
    leaderboard_error,
    risk_from_losses,
)
from ladderboard.mechanisms._session import LadderChanges as LadderChanges
from ladderboard.mechanisms._session import changes_of_others as changes_of_others
from ladderboard.mechanisms._session import largest_standard_error as largest_standard_error
from ladderboard.mechanisms._session import standard_error_class as standard_error_class
from ladderboard.mechanisms._session import to_float_vector as to_float_vector
from ladderboard.mechanisms._shaky_calibration import CalibratedSettings, calibrated_settings
from ladderboard.mechanisms._shaky_ladder import PaperSettings, ShakyLadder, paper_settings
from ladderboard.mechanisms._thresholdout import Thresholdout
from ladderboard.mechanisms._transcript import ReleaseDeviation as ReleaseDeviation
from ladderboard.mechanisms._transcript import ReleaseValues as ReleaseValues
from ladderboard.mechanisms._transcript import ReplayedChanges as ReplayedChanges
from ladderboard.mechanisms._transcript import Transcript as Transcript
from ladderboard.mechanisms._transcript import VisibleChange as VisibleChange
from ladderboard.mechanisms._transcript import log_binomial as log_binomial

__all__ = [
    "MECHANISMS",
    "BootstrapLadder",
    "CalibratedSettings",
    "ComparisonSettings",
    "Exact",
    "Grouping",
    "GrowingLadder",
    "Ladder",
    "Mechanism",
    "Noisy",
    "Observation",
    "Observations",
    "OneBit",
    "PaperSettings",
    "ParameterFreeLadder",
    "Release",
    "Releases",
    "Rounded",
    "ScoreMechanism",
    "Session",
    "Setup",
    "ShakyLadder",
    "Step",
    "StepMany",
    "Thresholdout",
    "calibrated_settings",
    "leaderboard_error",
    "mechanism",
    "paper_settings",
    "risk_from_losses",
]
