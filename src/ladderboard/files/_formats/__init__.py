"""Readers for the file formats; all but CSV are loaded when a file needs them."""

from ladderboard.files._formats._csv import plain_cell as plain_cell
from ladderboard.files._formats._open import open_sheet as open_sheet
