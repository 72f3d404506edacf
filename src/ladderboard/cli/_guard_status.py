"""``ladderboard guard status``: budget, best release, certificate and history."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard.cli._guard_options import AsJson, FileOrUrl, KeyFile, is_url, open_guard
from ladderboard.cli._said import printable, say, say_json
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.holdout import LadderStatus, Status

__all__ = ["status"]

_TALL = 6
_ROWS = 12


def status(
    file: FileOrUrl,
    *,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Recompute every release from the key and the secret side first."
        ),
    ] = False,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what is public: budget, best release, ladders, certificate and history.

    The chain is followed from its start, and every link checked.
    """
    if check and is_url(file):
        raise InvalidSetting("--check needs the secret side, so the guard's file itself.")
    with open_guard(file, key_file) as guard:
        checked = guard.check() if check else None
        found = guard.status()
    if as_json:
        say_json({**found.describe(), **({} if checked is None else {"checked": checked})})
        return
    say(*_shown(file, found))
    if checked is not None:
        say("", _checked(checked, found.meter.at.asked))


def _checked(recomputed: int, asked: int) -> str:
    if recomputed == asked:
        return f"Checked: all {asked:,} releases follow from the key and the secret side."
    return (
        f"Checked: all {asked:,} entries are what was committed to, and states follow each other; "
        "this mechanism's releases cannot be recomputed from what is kept."
    )


def _shown(file: str, found: "Status") -> list[str]:
    from ladderboard.cli._guard_plot import can_draw, history, meter  # noqa: PLC0415 - help first
    from ladderboard.cli._guard_words import (  # noqa: PLC0415
        assumed,
        described,
        promised,
        screen,
        wrapped,
    )
    from ladderboard.holdout import unseen  # noqa: PLC0415 - same

    plain, width = not can_draw(), screen()
    opening, at, budget = found.opening, found.meter.at, found.meter.budget
    examples = (
        f"{opening['n']:,} {'groups' if opening['rules']['rows'] != opening['n'] else 'examples'}"
    )
    used = f"{found.meter.used:,} of {budget:,} questions used, {found.meter.remaining:,} left"
    if at.charged:
        used += f"; {at.charged:,} of them charged for an old copy"
    lines = [
        *wrapped(
            f"{file}: {described('loss', opening['loss'])} on {examples}", indent="  ", first=""
        ),
        *wrapped(
            f"answered by {described('mechanism', opening['mechanism'])}", indent="  ", first=""
        ),
        "",
        meter(found.meter.used, budget, min(width, 60), plain=plain),
        *wrapped(used),
    ]
    declared = opening["rules"].get("ladders", 1)
    if declared > 1:
        in_use = sum(each.questions > 0 for each in found.ladders)
        lines += wrapped(f"{in_use:,} of {declared:,} ladders in use")
    if at.closed:
        lines += wrapped("It is closed and answers no more questions.")
    gain = unseen(found.meter.mechanism)
    lines += ["", *wrapped(_best(found))]
    if gain is not None:
        lines += wrapped(f"Gains below about {gain:.2g} may go unseen.")
    values = _running(found)
    if len(set(values)) > 1:
        lines += ["", *history(values, min(width, 70), _TALL, plain=plain)]
        lines += wrapped("The best release after each question.")
    if len(found.ladders) > 1:
        lines += ["", *_ladders(found.ladders, width)]
    bound = found.certificate
    lines += ["", *wrapped(promised(bound)), *assumed(bound)]
    return [*lines, "", f"commitment {found.commitment}", f"head       {found.head}"]


def _best(found: "Status") -> str:
    asked = found.meter.at.asked
    if not asked:
        return "Nothing was asked yet."
    changes = sum(each.changes for each in found.ladders)
    moves = f"{changes:,} of {asked:,} questions improved on what stood, {_when(found)} UTC"
    if found.released is None:
        return f"Releases are told at the close; {moves}."
    best = next(each for each in found.ladders if each.released == found.released)
    on = f" on ladder {printable(best.name)}" if best.name else ""
    return f"The best release is {found.released:.6g}{on}; {moves}."


def _running(found: "Status") -> list[float]:
    """Return the least value released so far, after each question on any ladder."""
    least: list[float] = []
    for each in found.history:
        if each.value is not None:
            least.append(min(least[-1], each.value) if least else each.value)
    return least


def _when(found: "Status") -> str:
    first, last = (
        time.strftime("%Y-%m-%d %H:%M", time.gmtime(found.history[each].time)) for each in (0, -1)
    )
    return f"asked on {first}" if first == last else f"asked from {first} to {last}"


def _ladders(ladders: "tuple[LadderStatus, ...]", width: int) -> list[str]:
    ladders = tuple(each for each in ladders if each.questions or len(ladders) == 1)
    shown = sorted(ladders, key=_order)[:_ROWS]
    rows = [("ladder", "released", "questions", "improved"), *map(_row, shown)]
    longest = max(width - 34, 8)
    rows = [
        (name if len(name) <= longest else f"{name[: longest - 3]}...", *more)
        for name, *more in rows
    ]
    names = max(len(row[0]) for row in rows)
    lines = [f"{row[0]:<{names}}  {row[1]:>9}  {row[2]:>9}  {row[3]:>8}" for row in rows]
    more = len(ladders) - len(shown)
    return [*lines, *([f"and {more:,} more, in --json"] if more else [])]


def _order(ladder: "LadderStatus") -> tuple[float, str]:
    return (1e9 if ladder.released is None else ladder.released, ladder.name)


def _row(ladder: "LadderStatus") -> tuple[Any, ...]:
    value = "kept back" if ladder.released is None else f"{ladder.released:.6g}"
    return (
        printable(ladder.name) or "(no name)",
        value,
        f"{ladder.questions:,}",
        f"{ladder.changes:,}",
    )
