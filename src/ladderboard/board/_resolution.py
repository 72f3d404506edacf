"""What a board shows of gains and leaves to an attacker, in the board's metric."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ladderboard._formatting import format_list
from ladderboard.bounds import MORE_ROWS, TYPICAL_LOSS, describe_resolution, resolution

if TYPE_CHECKING:
    from ladderboard.board._rules import Rules
    from ladderboard.bounds import Resolution
    from ladderboard.holdout import Scorer, ScoringResult
    from ladderboard.mechanisms import Mechanism


class BaselineScore(NamedTuple):
    """The risk of a model that needs no learning, and its standard error. For the organiser only.

    ``zero_one`` is whether the loss of each example is 0 or 1; then the risk implies the error.
    """

    risk: float
    standard_error: float
    zero_one: bool

    @classmethod
    def of(cls, scorer: Scorer, scored: ScoringResult) -> BaselineScore:
        """Return the baseline that was scored."""
        error = scorer.standard_error(scored)
        return cls(scored.risk, error, scorer.loss.is_binary)


def board_resolution(
    rules: Rules, mechanism: Mechanism, n: int, baseline: BaselineScore | None
) -> Resolution:
    """Return what a board with ``n`` independent examples shows, near a good score.

    For right and wrong answers that is a loss of 0.2, or the baseline's if that is lower. Other
    losses have no usual size: there it is the baseline itself.
    """
    released, error = TYPICAL_LOSS, None
    if baseline is not None and baseline.zero_one:
        released = min(released, baseline.risk)
    elif baseline is not None:
        # A constant prediction ranks nothing: by AUC it has no spread, and says nothing of others'.
        released, error = baseline.risk, baseline.standard_error or None
    return resolution(
        mechanism,
        n=n,
        questions=rules.questions * rules.answers,
        teams=rules.ladders,
        accounts=mechanism.attacker_accounts(rules.ladders),
        released=released,
        standard_error=error,
    )


def describe_board_resolution(
    rules: Rules, mechanism: Mechanism, n: int, baseline: BaselineScore | None
) -> list[str]:
    """Return the same in sentences, with what four times the rows would bring."""
    display = rules.display
    here = board_resolution(rules, mechanism, n, baseline)
    more = MORE_ROWS * n
    if baseline is not None:
        baseline = baseline._replace(standard_error=baseline.standard_error / math.sqrt(MORE_ROWS))
    # A team has a ladder for each live metric; people think in teams.
    ladders = rules.answers
    by_teams = replace(here, teams=here.teams // ladders, accounts=max(here.accounts // ladders, 1))
    return describe_resolution(
        by_teams,
        near=f"{display.name} {display.metric_value(here.released):.3g}",
        gain_text=lambda gain: display.gain_text(gain, here.released),
        with_more_rows=None
        if rules.mechanism is not None
        else board_resolution(rules, rules.mechanism_for(more), more, baseline),
    )


def describe_sizes(rules: Rules, sizes: tuple[int, ...] = (1_000, 5_000, 20_000)) -> str:
    """Return the smallest gains that boards with these rules show, by their public rows."""
    display, gains = rules.display, list[str]()
    for n in sizes:
        result = board_resolution(rules, rules.mechanism_for(n), n, None)
        rows = f"{n:,}" if gains else f"{n:,} public rows"
        gains.append(f"{display.gain_text(result.usual_gain, result.released)} with {rows}")
    return (
        f"The smallest gain that shows near {display.name} "
        f"{display.metric_value(TYPICAL_LOSS):.3g}, after a team's third record: "
        f"{format_list(gains)}."
    )
