"""Prediction files in, itemised refusals out.

Reads what people really send, joins it by id, and says in words what is wrong with the rest.
:func:`read_holdout` is the owner's side. A :class:`Roster` is what it leaves for others: the ids.
:func:`read_predictions` gets a roster and no labels, so its refusals cannot depend on them.
"""

from ladderboard.errors import Problem
from ladderboard.files._column_matching import ExpectedColumns as ExpectedColumns
from ladderboard.files._column_matching import expected_columns as expected_columns
from ladderboard.files._columns import load_polars as load_polars
from ladderboard.files._formats import escape_formula
from ladderboard.files._holdout import HoldoutTable, read_holdout
from ladderboard.files._predictions import read_predictions
from ladderboard.files._problems import Problems, format_names, refuse
from ladderboard.files._roster import Roster
from ladderboard.files._source import Limits, detect_format

__all__ = [
    "HoldoutTable",
    "Limits",
    "Problem",
    "Problems",
    "Roster",
    "detect_format",
    "escape_formula",
    "format_names",
    "read_holdout",
    "read_predictions",
    "refuse",
]
