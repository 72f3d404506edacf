"""Charts as SVG. Functions return None when there is nothing to draw; the page then says so."""

from ladderboard.server._pages._charts._bars import Bar, Bin, bar_chart, histogram
from ladderboard.server._pages._charts._board import (
    activity_histogram,
    history_chart,
    team_activity_chart,
    team_history_chart,
)
from ladderboard.server._pages._charts._lines import (
    ChartLine,
    ChartStep,
    Mark,
    line_chart,
    step_chart,
)
from ladderboard.server._pages._charts._svg import coord, tag

__all__ = [
    "Bar",
    "Bin",
    "ChartLine",
    "ChartStep",
    "Mark",
    "activity_histogram",
    "bar_chart",
    "coord",
    "histogram",
    "history_chart",
    "line_chart",
    "step_chart",
    "tag",
    "team_activity_chart",
    "team_history_chart",
]
