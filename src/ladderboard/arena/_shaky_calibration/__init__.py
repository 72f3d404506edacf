"""Finds the best settings of the Shaky Ladder for a size, by simulated games."""

from ladderboard.arena._shaky_calibration._calibrate import (
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
