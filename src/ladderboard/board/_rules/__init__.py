"""The rules of a board: what ``board.yaml`` may say, how it is read, and what may be amended."""

from ladderboard.board._rules._model import Rules, read_rules
from ladderboard.board._rules._parse import Noted
from ladderboard.board._rules._parts import Baseline, Display, FileLimits, Finals, Phase, Window
from ladderboard.board._rules._text import (
    displayed,
    metric_of,
    tell_bound,
)
from ladderboard.board._rules._yaml import read_yaml

__all__ = [
    "Baseline",
    "Display",
    "FileLimits",
    "Finals",
    "Noted",
    "Phase",
    "Rules",
    "Window",
    "displayed",
    "metric_of",
    "read_rules",
    "read_yaml",
    "tell_bound",
]
