"""What a board or guard of some size shows, and what an attacker could gain; both in words.

Every place that advises on sizes uses these: ``plan``, ``board new``, ``board check``, pages.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_count
from ladderboard.mechanisms import Exact, largest_standard_error, standard_error_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.mechanisms import Mechanism

    GainText = Callable[[float], str | None]

RECORDS = (1, 3, 8)
"""Gains are stated after this many records of one team."""

TYPICAL_LOSS = 0.2
"""Gains are stated for a best model with this loss, unless the labels show that it is easy."""

MORE_ROWS = 4
"""Advice compares with this many times the examples."""


@dataclass(frozen=True)
class Resolution:
    """What a size and a mechanism show, and what an attacker could gain; all in losses.

    Parameters
    ----------
    n, questions, teams, accounts
        Independent examples, questions of all teams, ladders, and how many of these ladders one
        attacker may hold.
    released
        The loss of the best model for which the gains are stated.
    gains
        The smallest gains that are shown 19 times out of 20, after each number of ``RECORDS``, if
        all teams have as many. 0 if every gain is shown.
    attacker_gain, exact_gain
        How much better than it is an attacker's model could look here, and if every score were
        shown exactly: at most all that is left to gain. The first is None if it was not measured
        for this mechanism.
    """

    n: int
    questions: int
    teams: int
    accounts: int
    released: float
    gains: tuple[float, ...]
    attacker_gain: float | None
    exact_gain: float

    @property
    def usual_gain(self) -> float:
        """The smallest gain that is shown after three records."""
        return self.gains[RECORDS.index(3)]

    @property
    def nothing_left(self) -> bool:
        """Whether less than half an example is left to gain, and no gain shows."""
        return min(self.gains) >= self.released and self.released < 0.5 / self.n

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able; ``gains`` by the number of records."""
        by_records = {str(count): gain for count, gain in zip(RECORDS, self.gains, strict=True)}
        return {**asdict(self), "gains": by_records}


def resolution(
    mechanism: Mechanism,
    *,
    n: int,
    questions: int,
    teams: int = 1,
    accounts: int = 1,
    released: float = TYPICAL_LOSS,
    standard_error: float | None = None,
) -> Resolution:
    """Return what a mechanism shows of gains, and what it leaves to an attacker.

    ``standard_error`` is that of a score near ``released``; if left out, the loss is zero-one.

    >>> from ladderboard.mechanisms import GrowingLadder
    >>> result = resolution(GrowingLadder(step=1), n=5_000, questions=1_000)
    >>> [round(gain, 3) for gain in result.gains], round(result.exact_gain, 3)
    ([0.017, 0.029, 0.053], 0.173)
    """
    # Attacks are played with coin flips as labels; others have another spread.
    scale = 1.0 if standard_error is None else 2 * standard_error * math.sqrt(n)
    gain = mechanism.attacker_gain(n=n, questions=questions)
    exact = min(Exact().attacker_gain(n=n, questions=questions) * scale, released)
    return Resolution(
        n,
        questions,
        teams,
        accounts,
        released,
        tuple(
            mechanism.smallest_visible_gain(
                n=n,
                released=released,
                changes=count,
                others=(accounts - 1) * count,
                standard_error=standard_error,
            )
            for count in RECORDS
        ),
        None if gain is None else min(gain * scale, exact),
        exact,
    )


def unknown_standard_error(n: int) -> float:
    """Return one for gains that are stated in standard errors: of those that are rounded up most.

    A ladder goes by the largest standard error of a class.
    """
    error_class = standard_error_class(1 / math.sqrt(n)) - 1
    return largest_standard_error(error_class) * (1 + 1e-6)


def describe_resolution(
    result: Resolution,
    *,
    near: str,
    gain_text: GainText = "{:.2g}".format,
    with_more_rows: Resolution | None = None,
) -> list[str]:
    """Return a resolution in sentences.

    Parameters
    ----------
    near
        The score for which gains are stated, such as ``"accuracy 0.8"``.
    gain_text
        Formats a gain in loss in the metric's unit.
    with_more_rows
        The same for more examples, to be compared.

    >>> small = Resolution(1_828, 1_000, 20, 2, 0.2, (0.031, 0.054, 0.099), 0.059, 0.2)
    >>> large = Resolution(7_312, 1_000, 20, 2, 0.2, (0.015, 0.027, 0.049), 0.031, 0.12)
    >>> lines = describe_resolution(small, near="accuracy 0.8", with_more_rows=large)
    >>> print(lines[0])
    Near accuracy 0.8, gains smaller than about 0.031 may not show after a team's first new best,
    0.054 after its third, 0.099 after its eighth.
    >>> print(lines[1])
    An attacker with 2 of 20 teams could make a model look 0.059 better than it is; 0.20 if scores
    were shown exactly. Both are means of simulated attacks.
    >>> print(lines[2])
    With 7,312 rows instead of 1,828: a gain of 0.027 shows after the third new best, and an
    attacker gains 0.031.
    """

    def text(gain: float) -> str | None:
        return _two_digits(gain_text(gain))

    lines = [describe_gains(result, near, gain_text)]
    if result.nothing_left:
        return lines
    if result.attacker_gain is not None:
        gain, exact = text(result.attacker_gain), text(result.exact_gain)
        comparison = (
            ". It is the mean of simulated attacks."
            if gain == exact
            else f"; {exact} if scores were shown exactly. Both are means of simulated attacks."
        )
        lines.append(
            f"An attacker{_format_accounts(result)} could make a model look {gain} better than it "
            f"is{comparison}"
        )
    if with_more_rows is not None:
        more = with_more_rows
        line = (
            f"With {more.n:,} rows instead of {result.n:,}: a gain of {text(more.usual_gain)} "
            "shows after the third new best"
        )
        if more.attacker_gain is not None:
            line += f", and an attacker gains {text(more.attacker_gain)}"
        lines.append(f"{line}.")
    return lines


def describe_gains(result: Resolution, near: str, gain_text: GainText) -> str:
    """Return the gains alone in a sentence; see ``describe_resolution``.

    >>> few = Resolution(200, 1_000, 20, 2, 0.1, (0.04, 0.1, 0.2), 0.059, 0.1)
    >>> print(describe_gains(few, "accuracy 0.9", "{:.2g}".format))
    Near accuracy 0.9, gains smaller than about 0.040 may not show after a team's first new best;
    after its third, any gain may stay hidden.
    """
    if not any(result.gains):
        return "Every gain shows."
    shown = [_two_digits(gain_text(gain)) for gain in result.gains if gain < result.released]
    if not shown:
        return f"Near {near}, any gain may stay hidden."
    sentence = f"Near {near}, gains smaller than about {shown[0]} may not show"
    if len({*shown}) == 1 and len(shown) == len(result.gains):
        return f"{sentence}."
    whose, its = ("a team's", "its") if result.teams > 1 else ("the", "the")
    # Gains never fall with the number of new bests.
    after = [f"after {whose} first new best", f"after {its} third", f"after {its} eighth"]
    parts = [f"{text} {when}" for text, when in zip(shown[1:], after[1:], strict=False)]
    if len({*shown[1:]}) == 1 and len(shown) == len(result.gains):
        parts = parts[:1]
    hidden = f"; {after[len(shown)]}, any gain may stay hidden" if len(shown) < len(after) else ""
    return f"{', '.join([f'{sentence} {after[0]}', *parts])}{hidden}."


def _two_digits(gain: str | None) -> str | None:
    """Return a gain below 1 with two digits, as those beside it have.

    >>> _two_digits("0.1"), _two_digits("0.057"), _two_digits("12")
    ('0.10', '0.057', '12')
    """
    if gain is None or not gain.startswith("0.") or len(gain[2:].lstrip("0")) > 1:
        return gain
    return f"{gain}0"


def _format_accounts(result: Resolution) -> str:
    if result.teams == 1:
        return ""
    if result.accounts < result.teams:
        return f" with {result.accounts:,} of {result.teams:,} teams"
    return f" with {format_count(result.accounts, 'account')}"
