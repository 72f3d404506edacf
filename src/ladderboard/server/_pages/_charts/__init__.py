"""Charts as SVG, from numbers alone; None where there is nothing to draw, to be said in words."""

from ladderboard.server._pages._charts._bars import Bar, Bin, bar_chart, bin_chart
from ladderboard.server._pages._charts._board import (
    history_chart,
    own_chart,
    team_bars,
    time_bars,
)
from ladderboard.server._pages._charts._lines import Line, Mark, Step, line_chart, step_chart
from ladderboard.server._pages._charts._svg import number, tag

__all__ = [
    "Bar",
    "Bin",
    "Line",
    "Mark",
    "Step",
    "bar_chart",
    "bin_chart",
    "history_chart",
    "line_chart",
    "number",
    "own_chart",
    "step_chart",
    "tag",
    "team_bars",
    "time_bars",
]
