"""Cells of tables that are written for spreadsheets: text from outside stays text there."""

from __future__ import annotations

__all__ = ["plain_cell"]

# What spreadsheets take for the beginning of a formula.
_FORMULA = tuple("=+-@\t\r\n|%＝＋－＠")


def plain_cell(text: str | None) -> str:
    """Return text that no spreadsheet takes for a formula.

    >>> plain_cell("=cmd|' /C calc'!A0"), plain_cell("Team 1")
    ("'=cmd|' /C calc'!A0", 'Team 1')
    """
    if text is None:
        return ""
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
