"""Calibration: the settings of the Shaky Ladder that serve a size best."""

from ladderboard.arena._calibration._calibrate import (
    Calibration,
    CalibrationSize,
    CandidateResult,
    CandidateSettings,
    calibrate,
    calibration_table,
)

__all__ = [
    "Calibration",
    "CalibrationSize",
    "CandidateResult",
    "CandidateSettings",
    "calibrate",
    "calibration_table",
]
