"""``ladderboard guard status``: budget, best release, certificate and a chart of the history."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard._formatting import format_digits, format_undetected_gains, printable
from ladderboard.cli._guard._files import FileOrUrl, KeyFile, echo_status
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import terminal_width, wrap_lines

if TYPE_CHECKING:
    from ladderboard.holdout import LadderStatus, Status

_CHART_HEIGHT = 6
_MAX_LADDERS = 12
_FULL, _EMPTY = "█", "░"
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row, then by column


def status(
    file: FileOrUrl,
    *,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="First recompute every release from the stored key and secrets."
        ),
    ] = False,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Show the public state: budget, best release, ladders, certificate and history.

    The whole chain of the ledger is checked.
    """
    echo_status(file, key_file, "guard", _format_status, check=check, as_json=as_json)


def _describe_check(recomputed: int, asked: int) -> str:
    if recomputed == asked:
        return f"Checked: all {asked:,} releases were recomputed from the stored key and secrets."
    return (
        f"Checked: all {asked:,} entries match their commitments, and their states are consistent. "
        "Releases of this mechanism cannot be recomputed from the stored data."
    )


def _format_status(file: str, current: "Status", checked: int | None) -> list[str]:
    from ladderboard.cli._guard._wording import (  # noqa: PLC0415
        describe_assumptions,
        describe_settings,
    )
    from ladderboard.holdout import (  # noqa: PLC0415 - as above
        describe_bound,
        format_risk_gain,
        is_too_wide,
        metric_value,
    )

    plain, width = not can_draw_blocks(), terminal_width()
    opening, state, budget = current.opening, current.meter.chain_state, current.meter.budget
    examples = (
        f"{opening['n']:,} {'groups' if opening['rules']['rows'] != opening['n'] else 'examples'}"
    )
    shown = opening["rules"].get("metric")
    measured = (
        printable(shown["title"])
        if shown is not None
        else describe_settings("loss", opening["loss"])
    )
    lines = wrap_lines(f"{file}: {measured} on {examples}", indent="  ", first="")
    if not current.meter.mechanism.rung_growth(1):  # the default needs no settings from anyone
        lines += wrap_lines(
            f"answered by {describe_settings('mechanism', opening['mechanism'])}",
            indent="  ",
            first="",
        )
    lines += [
        "",
        draw_meter(current.meter.used, budget, min(width, 60), plain=plain),
        *wrap_lines(_describe_usage(current)),
    ]
    declared = opening["rules"].get("ladders", 1)
    if declared > 1:
        in_use = sum(ladder.questions > 0 for ladder in current.ladders)
        lines += wrap_lines(f"{in_use:,} of {declared:,} ladders in use")
    if state.closed:
        lines += wrap_lines("It is closed and answers no more questions.")
    gain = current.smallest_visible_gain()
    lines += ["", *wrap_lines(_describe_best(current))]
    gain_text = format_risk_gain(gain, current.released, shown) if gain else None
    if gain_text is not None:
        lines += wrap_lines(format_undetected_gains(gain_text))
    values = [metric_value(value, shown) or 0.0 for value in _best_so_far(current)]
    name = "loss" if shown is None else printable(shown["title"])
    if len(set(values)) > 1:
        lines += ["", *draw_history(values, min(width, 70), _CHART_HEIGHT, plain=plain)]
        lines += wrap_lines(f"The best {name} after each question.")
    if len(current.ladders) > 1:
        lines += ["", *_ladder_table(current.ladders, width, shown)]
    if state.asked:
        bound = current.certificate
        lines += ["", *wrap_lines(describe_bound(bound, shown, current.released))]
        if not is_too_wide(bound, shown, current.released):
            lines += describe_assumptions(bound)
    lines += ["", f"commitment {current.commitment}", f"head       {current.head}"]
    return lines if checked is None else [*lines, "", _describe_check(checked, state.asked)]


def _describe_usage(current: "Status") -> str:
    meter, state = current.meter, current.meter.chain_state
    used = f"{meter.used:,} of {meter.budget:,} questions used"
    if state.closed:
        used += f", closed with {meter.budget - meter.used:,} not asked"
    else:
        used += f", {meter.remaining:,} left"
    return f"{used}; {state.charged:,} of them charged for an old copy" if state.charged else used


def _describe_best(current: "Status") -> str:
    from ladderboard.holdout import format_risk  # noqa: PLC0415 - keeps --help fast

    asked = current.meter.chain_state.asked
    if not asked:
        return "No questions were asked yet."
    changes = sum(ladder.changes for ladder in current.ladders)
    moves = f"{changes:,} of {asked:,} questions improved, {_question_times(current)} UTC"
    if current.released is None:
        return f"Releases are published at the close; {moves}."
    best = next(ladder for ladder in current.ladders if ladder.released == current.released)
    on = f" on ladder {printable(best.name)}" if best.name else ""
    best_text = printable(format_risk(current.released, current.opening["rules"].get("metric")))
    return f"The best is {best_text}{on}; {moves}."


def _best_so_far(current: "Status") -> list[float]:
    """Return the smallest value released so far, after each question on any ladder."""
    smallest: list[float] = []
    for release in current.history:
        if release.value is not None:
            smallest.append(min(smallest[-1], release.value) if smallest else release.value)
    return smallest


def _question_times(current: "Status") -> str:
    first, last = (
        time.strftime("%Y-%m-%d %H:%M", time.gmtime(current.history[index].time))
        for index in (0, -1)
    )
    return f"asked on {first}" if first == last else f"asked from {first} to {last}"


def _ladder_table(
    ladders: "tuple[LadderStatus, ...]", width: int, metric: "Mapping[str, Any] | None"
) -> list[str]:
    ladders = tuple(ladder for ladder in ladders if ladder.questions or len(ladders) == 1)
    shown = sorted(ladders, key=_by_release)[:_MAX_LADDERS]
    name = "loss" if metric is None else printable(metric["title"])
    heading = ("ladder", name, "questions", "improved")
    rows = [heading, *(_ladder_row(ladder, metric) for ladder in shown)]
    limit = max(width - 34, 8)
    rows = [
        (name if len(name) <= limit else f"{name[: limit - 3]}...", *cells) for name, *cells in rows
    ]
    names = max(len(row[0]) for row in rows)
    lines = [f"{row[0]:<{names}}  {row[1]:>9}  {row[2]:>9}  {row[3]:>8}" for row in rows]
    others = len(ladders) - len(shown)
    return [*lines, *([f"and {others:,} more, in --json"] if others else [])]


def _by_release(ladder: "LadderStatus") -> tuple[float, str]:
    return (1e9 if ladder.released is None else ladder.released, ladder.name)


def _ladder_row(ladder: "LadderStatus", metric: "Mapping[str, Any] | None") -> tuple[Any, ...]:
    from ladderboard.holdout import metric_value  # noqa: PLC0415 - keeps --help fast

    released = metric_value(ladder.released, metric)
    value = "at the close" if released is None else f"{released:.6g}"
    return (
        printable(ladder.name) or "(no name)",
        value,
        f"{ladder.questions:,}",
        f"{ladder.changes:,}",
    )


def can_draw_blocks() -> bool:
    """Return whether stdout can show block and braille characters."""
    if os.environ.get("TERM") in {"dumb", "linux"} and sys.stdout.isatty():
        return False
    try:
        f"{_FULL}{_EMPTY}{chr(_BRAILLE)}".encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeError):
        return False
    return True


def draw_meter(used: int, budget: int, width: int, *, plain: bool) -> str:
    """Draw a bar of used questions; one used question, and one left, is always visible.

    >>> draw_meter(1, 1000, 10, plain=True), draw_meter(999, 1000, 10, plain=True)
    ('#.........', '#########.')
    """
    full = round(width * used / budget)
    if 0 < used < budget:
        full = min(max(full, 1), width - 1)
    marks = "#." if plain else f"{_FULL}{_EMPTY}"
    return marks[0] * full + marks[1] * (width - full)


def draw_history(values: Sequence[float], width: int, height: int, *, plain: bool) -> list[str]:
    r"""Draw values as a step chart, with labels for the axes.

    >>> print("\n".join(draw_history([0.5, 0.5, 0.25, 0.25], 13, 3, plain=True)))
     0.5 #####
             #
    0.25     ####
         1      4
    """
    low, high = min(values), max(values)
    ends = [format_digits(end, 4) for end in ((high, low) if low < high else (high,))]
    height = height if low < high else 1
    margin = max(map(len, ends))
    columns = max(width - margin - 1, 8)
    across, down = (columns, height) if plain else (2 * columns, 4 * height)
    dots = _step_grid(values, across, down)
    rows = _draw_hashes(dots) if plain else _draw_braille(dots)
    labels = [ends[0], *[""] * (height - 2), *ends[1:]]
    return [
        *(f"{label:>{margin}} {row}".rstrip() for label, row in zip(labels, rows, strict=True)),
        f"{'':{margin}} 1{f'{len(values):,}' if len(values) > 1 else '':>{columns - 1}}".rstrip(),
    ]


def _step_grid(values: Sequence[float], across: int, down: int) -> list[list[bool]]:
    """Return a grid of dots, the top row first: a step line through the values."""
    low, high = min(values), max(values)
    unit = (down - 1) / (high - low) if low < high else 0
    grid = [[False] * across for _ in range(down)]
    before = round((high - values[0]) * unit)
    for column in range(across):
        # Several questions on one dot: the last one. Several dots for one question: that one.
        question = max(column * len(values) // across, (column + 1) * len(values) // across - 1)
        row = round((high - values[question]) * unit)
        top, bottom = sorted((before, row))
        for index in range(top, bottom + 1):
            grid[index][column] = True
        before = row
    return grid


def _draw_hashes(dots: list[list[bool]]) -> list[str]:
    return ["".join("#" if dot else " " for dot in row) for row in dots]


def _draw_braille(dots: list[list[bool]]) -> list[str]:
    rows = []
    for top in range(0, len(dots), 4):
        cells = []
        for left in range(0, len(dots[0]), 2):
            bits = sum(
                _DOTS[row][column]
                for row in range(4)
                for column in range(2)
                if dots[top + row][left + column]
            )
            cells.append(chr(_BRAILLE + bits) if bits else " ")
        rows.append("".join(cells))
    return rows
