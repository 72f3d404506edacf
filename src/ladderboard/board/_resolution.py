"""Which gains a board shows, and what an attacker could gain, in the board's metric."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._formatting import format_digits, format_list
from ladderboard.bounds import (
    MORE_ROWS,
    TYPICAL_LOSS,
    describe_gains,
    describe_resolution,
    resolution,
)

if TYPE_CHECKING:
    from ladderboard.board._rules import DisplayRules, Rules
    from ladderboard.bounds import Resolution
    from ladderboard.holdout import Scorer, ScoringResult
    from ladderboard.mechanisms import Mechanism


class BaselineScore(NamedTuple):
    """The risk of a model, and its standard error. For the organiser only, unless it was released.

    ``zero_one`` is whether the loss of each example is 0 or 1; then the risk implies the error.
    """

    risk: float
    standard_error: float | None
    zero_one: bool

    @classmethod
    def of(cls, scorer: Scorer, scored: ScoringResult) -> BaselineScore:
        """Return the baseline that was scored."""
        error = scorer.standard_error(scored)
        return cls(scored.risk, error, scorer.loss.is_binary)


def typical_score(scorer: Scorer, baseline: BaselineScore | None) -> BaselineScore | None:
    """Return the score near which gains are stated: the baseline, or that of a plausible model.

    The standard error of a statistic such as AUC depends on how many examples each class has, and
    a constant prediction has none. So a plausible good model is made from the labels, unless the
    baseline is better. For the organiser only.
    """
    plausible = scorer.plausible_model() if scorer.loss.uses_labels else None
    if plausible is None:
        return baseline
    typical = BaselineScore.of(scorer, plausible)
    if not typical.standard_error:
        return baseline
    if baseline is not None and baseline.standard_error and baseline.risk < typical.risk:
        return baseline
    return typical


def board_resolution(
    rules: Rules, mechanism: Mechanism, n: int, near: BaselineScore | None
) -> Resolution:
    """Return what a board with ``n`` independent examples shows, near a good score.

    For right and wrong answers that is a loss of 0.2, or that of ``near`` if it is lower. Other
    losses have no usual size: there it is ``near`` itself.
    """
    released, error = TYPICAL_LOSS, None
    if near is not None and near.zero_one:
        released = min(released, near.risk)
    elif near is not None:
        # A constant prediction ranks nothing: its AUC has no spread; others have.
        released, error = near.risk, near.standard_error or None
    return resolution(
        mechanism,
        n=n,
        questions=rules.questions * rules.answers,
        teams=rules.ladders,
        accounts=mechanism.attacker_accounts(rules.ladders),
        released=released,
        standard_error=error,
    )


def describe_board_gains(
    rules: Rules, mechanism: Mechanism, n: int, near: BaselineScore | None
) -> str:
    """Return the smallest gains that a board shows, in a sentence."""
    resolution = _by_teams(rules, board_resolution(rules, mechanism, n, near))
    return describe_gains(resolution, **_words(rules, resolution))


def describe_board_resolution(
    rules: Rules, mechanism: Mechanism, n: int, near: BaselineScore | None
) -> list[str]:
    """Return the same, what an attacker could gain, and what four times the rows would bring."""
    resolution = _by_teams(rules, board_resolution(rules, mechanism, n, near))
    more = MORE_ROWS * n
    if near is not None and near.standard_error is not None:
        near = near._replace(standard_error=near.standard_error / math.sqrt(MORE_ROWS))
    return describe_resolution(
        resolution,
        **_words(rules, resolution),
        with_more_rows=None
        if rules.mechanism is not None
        else board_resolution(rules, rules.mechanism_for(more), more, near),
    )


def _by_teams(rules: Rules, resolution: Resolution) -> Resolution:
    """Return a resolution by teams: each has a ladder for each live metric; baselines are none."""
    teams = 1 if rules.ladder == "board" else rules.teams
    accounts = max(resolution.accounts // rules.answers, 1)
    return replace(resolution, teams=teams, accounts=min(accounts, teams))


def _words(rules: Rules, resolution: Resolution) -> dict[str, Any]:
    """Return the score for which gains are stated, and how gains are formatted."""
    display = rules.display
    return {
        "near": _near_text(display, resolution.released),
        "gain_text": lambda gain: display.gain_text(gain, resolution.released),
    }


def describe_sizes(rules: Rules, sizes: tuple[int, ...] = (1_000, 5_000, 20_000)) -> str:
    """Return the smallest gains that boards with these rules show, by their public rows."""
    display, gains = rules.display, list[str]()
    for n in sizes:
        result = board_resolution(rules, rules.mechanism_for(n), n, None)
        rows = f"{n:,}" if gains else f"{n:,} public rows"
        gains.append(f"{display.gain_text(result.usual_gain, result.released)} with {rows}")
    return (
        f"Near {_near_text(display, TYPICAL_LOSS)}, after a team's third new best, gains may not "
        f"show if they are smaller than about {format_list(gains)}."
    )


def _near_text(display: DisplayRules, loss: float) -> str:
    """Return a score near which gains are stated; one below 1 has at least two decimals.

    >>> from ladderboard.board import DisplayRules
    >>> _near_text(DisplayRules("accuracy", shown_as="complement"), 0.1)
    'accuracy 0.90'
    """
    value = display.metric_value(loss)
    text = format_digits(value, 3)
    return f"{display.name} {text if value >= 1 or len(text) > len('0.0') else f'{value:.2f}'}"
