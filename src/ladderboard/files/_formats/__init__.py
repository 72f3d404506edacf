"""Readers for the file formats; all but CSV are loaded when a file needs them."""

from ladderboard.files._formats._csv import CsvTable as CsvTable
from ladderboard.files._formats._csv import escape_formula as escape_formula
from ladderboard.files._formats._open import open_table as open_table
