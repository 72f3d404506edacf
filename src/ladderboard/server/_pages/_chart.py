"""Charts as SVG, from numbers alone; None where there is nothing to draw, to be said in words."""

from ladderboard.server._pages._chart_bar import Bar, Bin, bar_chart, bin_chart
from ladderboard.server._pages._chart_board import history_chart, own_chart, team_bars, time_bars
from ladderboard.server._pages._chart_line import Line, line_chart
from ladderboard.server._pages._chart_step import Mark, Step, step_chart

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
    "own_chart",
    "step_chart",
    "team_bars",
    "time_bars",
]
