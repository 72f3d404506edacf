"""Reads files of labels and predictions, and refuses invalid ones with an itemised list.

:func:`read_holdout` reads the owner's labels. A :class:`Roster` holds the ids, which others may
know. :func:`read_predictions` gets a roster and no labels, and joins predictions to it by id, so
its refusals cannot depend on labels.
"""

from ladderboard.errors import Problem
from ladderboard.files._columns import load_polars as load_polars
from ladderboard.files._declared import ID_SEPARATOR, DeclaredColumns, guess_columns
from ladderboard.files._formats import escape_formula
from ladderboard.files._holdout import HoldoutTable, find_label_column, read_holdout
from ladderboard.files._memory import encode_memory as encode_memory
from ladderboard.files._predictions import read_predictions, read_small_classes
from ladderboard.files._roster import Roster
from ladderboard.files._roster import share_ids as share_ids
from ladderboard.files._source import GZIP_MAGIC as GZIP_MAGIC
from ladderboard.files._source import Gunzip as Gunzip
from ladderboard.files._source import Limits, Problems, detect_format, format_names, refuse
from ladderboard.files._source import NamedBytes as NamedBytes

__all__ = [
    "ID_SEPARATOR",
    "DeclaredColumns",
    "HoldoutTable",
    "Limits",
    "Problem",
    "Problems",
    "Roster",
    "detect_format",
    "escape_formula",
    "find_label_column",
    "format_names",
    "guess_columns",
    "read_holdout",
    "read_predictions",
    "read_small_classes",
    "refuse",
]
