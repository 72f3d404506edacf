"""Texts on the pages: counts, times, sizes, a board's rules and the meaning of its scores."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from ladderboard._formatting import format_list, format_size, format_undetected_gains

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_LOSSES = {
    "zero_one": "a prediction costs 0 if it is the label, and 1 if it is not",
    "top_k": "a prediction costs 0 if the label is among its first {k}, and 1 if it is not",
    "brier": "a prediction costs half the squared distance from its probabilities to the label",
    "log": "a prediction costs the logarithm of the label's probability, never more than 1; "
    "probabilities below {clip} count as {clip}",
    "absolute": "a prediction costs its distance from the label, as a part of the whole range",
    "squared": "a prediction costs its squared distance from the label, as a part of the whole "
    "range",
    "pinball": "a prediction of the quantile {quantile} costs its pinball loss, as a part of the "
    "whole range",
    "hamming": "a prediction costs the part of its values that differ from the label's",
}
_SCALES = {
    "loss": "The number shown is this mean",
    "complement": "The number shown is 1 less this mean",
    "scaled": "The number shown is this mean in the metric's own unit",
    "root": "The number shown is the root of this mean, in the labels' own unit",
}
_MEANS = {"complement": "their mean", "root": "the root of 1 less their mean"}
SCORED_EVERY_TIME = {"exact": "", "rounded": ", rounded", "noisy": ", with noise"}
"""Mechanisms that release a score for every submission, and how it is altered."""
_REGISTRATION = {
    "open": "Anyone can register a team.",
    "invited": "A team needs an invitation, which the organiser gives; each is good for one team.",
    "organiser": "The organiser makes the teams, and gives each its token.",
}
_REGISTRATION_PAST = {
    "open": "Anyone could register a team.",
    "invited": "A team needed an invitation, which the organiser gave.",
    "organiser": "The organiser made the teams.",
}
_VISIBILITY = {
    "public": "Everybody sees the standings.",
    "anonymous": "Everybody sees the standings; teams go by an id in place of their names.",
    "frozen": "Others see the standings as they were when the organiser froze them; every team "
    "still sees its own answers.",
    "hidden": "Only the organiser sees the standings; every team sees its own answers.",
}
_BOUND_CONDITIONS = {
    "predictions": "True means over fresh labels for these same examples; for models that were "
    "made without a look at the test inputs, over fresh data of the same kind. It holds if the "
    "examples are independent, and if nothing public but the answers of this board, the "
    "organiser's acts included, depends on their labels.",
    "scores": "True means over fresh examples of the same kind, scored in the same way, for models "
    "that were made without a look at these. It holds if the examples are independent, if the "
    "evaluators' scores are right, and if nothing public but the answers of this board, the "
    "organiser's acts included, depends on them.",
}
_CORRECTED_LABELS = (
    " Labels were corrected: each new one must follow from its own example, its old label and what "
    "is public, not from other labels."
)


def count(number: int, noun: str) -> str:
    """Return a number with a noun.

    >>> count(1, "question"), count(1200, "team"), count(0, "entry")
    ('1 question', '1,200 teams', 'no entries')
    """
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {plural}" if number else f"no {plural}"


def rough_duration(seconds: int) -> str:
    """Return a duration in its largest unit, rounded down, at least one second.

    >>> [rough_duration(seconds) for seconds in (90, 3 * 86400 + 7000, 400 * 86400, 0)]
    ['1 minute', '3 days', '13 months', '1 second']
    """
    days = seconds // 86400
    if days >= 730:  # two years
        return count(days // 365, "year")
    if days >= 60:
        return count(days // 30, "month")
    return next(
        (count(seconds // unit, name) for unit, name in _UNITS if seconds >= unit), "1 second"
    )


def parse_time(text: str) -> int:
    """Return an ISO 8601 time in seconds since 1970.

    >>> parse_time("1970-01-01T00:01:00Z")
    60
    """
    return int(datetime.fromisoformat(text).timestamp())


def relative_time(time: str, now: int) -> str:
    """Return the time until or since a time.

    >>> relative_time("1970-01-03T00:00:00Z", 0), relative_time("1970-01-01T00:00:00Z", 7200)
    ('in 2 days', '2 hours ago')
    """
    seconds = parse_time(time) - now
    return f"in {rough_duration(seconds)}" if seconds > 0 else f"{rough_duration(-seconds)} ago"


def exact_duration(seconds: int) -> str:
    """Return an exact duration; a day is "24 hours", since a window starts at any time.

    >>> [exact_duration(seconds) for seconds in (86400, 3600, 604800, 5400, 61)]
    ['24 hours', 'hour', '7 days', '90 minutes', '61 seconds']
    """
    if seconds == 86400:
        return "24 hours"
    unit, name = next(entry for entry in _UNITS if seconds % entry[0] == 0)
    return name if seconds == unit else count(seconds // unit, name)


def format_bytes(number: int) -> str:
    """Return a number of bytes with its unit.

    >>> format_bytes(100_000_000), format_bytes(512), format_bytes(1)
    ('100 MB', '512 bytes', '1 byte')
    """
    return count(number, "byte") if number < 1000 else format_size(number)


def confidence_percent(beta: float) -> str:
    """Return the confidence 1 - beta in percent, rounded down, so never 100.

    >>> confidence_percent(0.05), confidence_percent(0.001), confidence_percent(1e-9)
    ('95', '99.9', '99.9999')
    """
    return f"{math.floor(1e6 * (1 - beta) + 1e-6) / 1e4:g}"


def time_element(time: str) -> Markup:
    """Return an ISO 8601 time as a ``<time>`` element; a script changes it to local time.

    >>> print(time_element("2026-11-16T14:05:00Z"))
    <time datetime="2026-11-16T14:05:00Z">2026-11-16 14:05 UTC</time>
    """
    return Markup('<time datetime="{}">{} {} UTC</time>').format(time, time[:10], time[11:16])


class BoardState(NamedTuple):
    """The state of a board: a label, the CSS class of its badge, and a sentence."""

    label: str
    badge_class: str
    sentence: str


_STATES = {
    "paused": BoardState("paused", "badge-wait", "The organiser has paused the board; try later."),
    "restored": BoardState(
        "restored", "badge-wait", "The board was restored and waits for its organiser."
    ),
    "closing": BoardState("closing", "badge-wait", "The board is being closed."),
    "closed": BoardState("closed", "", "The board is closed and takes no more submissions."),
    "moved": BoardState("moved", "badge-bad", "The board has moved to another server."),
}


def is_over(board: Mapping[str, Any]) -> bool:
    """Tell whether a board has ended for good.

    >>> is_over({"status": "closed"}), is_over({"status": "paused"})
    (True, False)
    """
    return board["status"] in {"closing", "closed", "moved"}


def is_full(board: Mapping[str, Any]) -> bool:
    """Tell whether all places for teams are taken; False if the number of teams is hidden.

    >>> is_full({"registered": 4, "teams": 4}), is_full({"registered": None, "teams": 4})
    (True, False)
    """
    return board["registered"] is not None and board["registered"] >= board["teams"]


def board_state(board: Mapping[str, Any], now: int) -> BoardState:
    """Return the state of a board; an open one may be outside of its phases.

    >>> board = {"status": "open", "phase": None, "phases": [
    ...     {"name": "main", "start": "1970-01-02T00:00:00Z", "end": None}]}
    >>> board_state(board, 0).label
    'not open yet'
    >>> board_state({**board, "phase": "main"}, 90_000).sentence
    'The board is open.'
    """
    if board["status"] != "open":
        return _STATES[board["status"]]
    if board["phase"] is not None:
        name = "" if len(board["phases"]) == 1 else f" in its phase {board['phase']}"
        return BoardState("open", "badge-good", f"The board is open{name}.")
    starts = [phase["start"] for phase in board["phases"] if phase["start"] is not None]
    coming = next((start for start in starts if parse_time(start) > now), None)
    if coming is None:
        return BoardState(
            "deadline passed", "badge-wait", "The deadline has passed; the organiser closes it."
        )
    label = "not open yet" if coming == board["phases"][0]["start"] else "between phases"
    return BoardState(label, "badge-wait", f"Questions are taken {relative_time(coming, now)}.")


def describe_rules(board: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the rules as pairs of a topic and a text; texts with times are Markup."""
    rules = [
        ("Score", _describe_score(board)),
        ("Files", _describe_files(board)),
        ("Questions", _describe_questions(board)),
        ("What is told", _describe_answers(board)),
        ("When", _describe_phases(board)),
        ("Taking part", _describe_registration(board)),
        ("Baselines", _describe_baselines(board)),
        ("At the end", _describe_finals(board)),
        ("Who sees what", _VISIBILITY[board["visibility"]]),
    ]
    return [(topic, text) for topic, text in rules if text]


def _describe_score(board: Mapping[str, Any]) -> str:
    """Return how submissions are scored.

    >>> display = {"name": "accuracy", "as": "complement", "direction": "higher", "digits": 3}
    >>> board = {"display": display, "n": 1000, "takes": "predictions"}
    >>> print(_describe_score({**board, "loss": {"name": "zero_one"}}))
    Submissions are scored by accuracy; higher is better. For each of 1,000 hidden public examples,
    a prediction costs 0 if it is the label, and 1 if it is not; a score is the mean over them.
    The number shown is 1 less this mean, to 3 digits.
    >>> print(_describe_score({**board, "loss": {"name": "shortfall"}, "takes": "scores"}))
    Evaluators give a score from 0 to 1, the best, to each of 1,000 hidden public examples. The
    number shown is their mean, to 3 digits; higher is better.
    """
    display, loss = board["display"], board["loss"]
    if board["takes"] == "scores":
        return (
            f"Evaluators give a score from 0 to 1, the best, to each of {board['n']:,} hidden "
            f"public examples. The number shown is {_MEANS.get(display['as'], '1 less their mean')}"
            f", to {count(display['digits'], 'digit')}; {display['direction']} is better."
        )
    name = loss["name"]
    cost = _LOSSES.get(name, f"the loss {name} says what a prediction costs, from 0 to 1")
    cost = cost.format(**{key: value for key, value in loss.items() if key != "name"})
    return (
        f"Submissions are scored by {display['name']}; {display['direction']} is better. "
        f"For each of {board['n']:,} hidden public examples, {cost}; a score is the mean over "
        f"them. {_SCALES[display['as']]}, to {count(display['digits'], 'digit')}."
    )


def _describe_files(board: Mapping[str, Any]) -> str:
    limit = board["files"]
    return (
        f"A file has a row for each of the {board['rows']:,} ids: a column id, and the "
        f"{board['takes']} beside it. CSV, TSV, Parquet, Arrow, JSON Lines and .npy are read, "
        f"packed with gzip or not; unpacked, a file has at most {format_bytes(limit['bytes'])} and "
        f"{count(limit['rows'], 'row')}."
    )


def _describe_questions(board: Mapping[str, Any]) -> str:
    """Return how many questions are allowed.

    >>> print(_describe_questions({"questions": 1001, "baselines": [{"file": "a.csv"}], "teams": 40,
    ...     "share": 25, "per_team": 30, "window": {"questions": 5, "seconds": 86400},
    ...     "takes": "predictions"}))
    Every file that is scored is a question. The board answers 1,001 questions in all, 1 of them
    for the baseline. 25 questions are kept for each of at most 40 teams, and nobody else can use
    them. A team may ask 30 questions in all, and at most 5 in any 24 hours. A file that is
    refused, or the same predictions sent again, costs nothing.
    """
    baseline_count = sum("file" in baseline for baseline in board["baselines"])
    share, limit = board["share"], board["per_team"]
    pool = board["questions"] - baseline_count - board["teams"] * share
    sentences = ["Every file that is scored is a question."]
    for_baselines = ""
    if baseline_count:
        plural = "s" if baseline_count > 1 else ""
        for_baselines = f", {baseline_count:,} of them for the baseline{plural}"
    sentences.append(
        f"The board answers {count(board['questions'], 'question')} in all{for_baselines}."
    )
    verb = "is" if share == 1 else "are"
    sentences.append(
        f"{count(share, 'question')} {verb} kept for each of at most "
        f"{count(board['teams'], 'team')}, and nobody else can use them."
    )
    window = board["window"]
    window_rule = (
        ""
        if window is None
        else f", and at most {window['questions']:,} in any {exact_duration(window['seconds'])}"
    )
    pool_rule = ""
    if limit > share and pool > 0:
        pool_rule = (
            f"; what goes beyond its {share:,} comes out of a pool of {pool:,}, first come, first "
            "served"
        )
    sentences.append(f"A team may ask {count(limit, 'question')} in all{window_rule}{pool_rule}.")
    takes = board["takes"]
    sentences.append(f"A file that is refused, or the same {takes} sent again, costs nothing.")
    return " ".join(sentences)


def _describe_answers(board: Mapping[str, Any]) -> str:
    """Return what an answer reveals.

    >>> rounded = {"mechanism": "rounded", "digits": 2}
    >>> print(_describe_answers({"ladder": "team", "mechanism": rounded}))
    Every submission is told its own score, rounded; the standings show each team's best.
    """
    name = board["mechanism"]["mechanism"]
    is_shared = board["ladder"] == "board"
    if name in SCORED_EVERY_TIME:
        best = "the best of all teams" if is_shared else "each team's best"
        how = SCORED_EVERY_TIME[name]
        return f"Every submission is told its own score{how}; the standings show {best}."
    best = "the best of all teams" if is_shared else "the best of its own team"
    if name == "one_bit":
        return f"A submission is told only whether it beats {best}; numbers come at the close."
    if is_shared:
        return (
            "The whole board has one ladder: only a submission that beats the best of all teams is "
            "told a number. All others hear that the best stays what it is."
        )
    return (
        "Every team has a ladder of its own: a submission is told a number when it beats the best "
        "of its own team, whatever the others have."
    )


def _describe_phases(board: Mapping[str, Any]) -> str:
    """Return when questions are answered.

    >>> phase = {"name": "main", "start": None, "end": None}
    >>> print(_describe_phases({"status": "open", "phases": [phase]}))
    Questions are answered at any time, until the organiser closes the board.
    """
    phases = board["phases"]
    if is_over(board):
        return "The board takes no more questions."
    if len(phases) == 1 and phases[0]["start"] is phases[0]["end"] is None:
        return "Questions are answered at any time, until the organiser closes the board."
    times = [
        Markup("{}{}{}").format(
            f"in the phase {phase['name']} " if len(phases) > 1 else "",
            ""
            if phase["start"] is None
            else Markup("from {} ").format(time_element(phase["start"])),
            "without an end"
            if phase["end"] is None
            else Markup("until {}").format(time_element(phase["end"])),
        )
        for phase in phases
    ]
    return Markup("Questions are answered {}. When a request arrives decides.").format(
        Markup("; ").join(times)
    )


def _describe_registration(board: Mapping[str, Any]) -> str:
    """Return how teams register.

    >>> board = {"status": "closed", "registration": "open", "teams": 9, "takes": "predictions"}
    >>> _describe_registration(board)
    'Anyone could register a team. There were at most 9 teams.'
    """
    if board["status"] == "closed":
        scores = " Evaluators handed in the scores of its models."
        return (
            f"{_REGISTRATION_PAST[board['registration']]} There were at most "
            f"{count(board['teams'], 'team')}.{scores if board['takes'] == 'scores' else ''}"
        )
    scores = " Evaluators hand in the scores of its models; a team itself cannot submit."
    return (
        f"{_REGISTRATION[board['registration']]} There are at most {count(board['teams'], 'team')}."
        f"{scores if board['takes'] == 'scores' else ''}"
    )


def _describe_baselines(board: Mapping[str, Any]) -> str:
    """Return where the baselines come from.

    >>> _describe_baselines({"baselines": [{"name": "Mean", "file": "mean.csv"}]})
    'Mean was asked as everybody asks, and has no rank.'
    """
    scored = [baseline["name"] for baseline in board["baselines"] if "file" in baseline]
    declared = [baseline["name"] for baseline in board["baselines"] if "file" not in baseline]
    sentences = []
    if scored:
        were, have = ("were", "have") if len(scored) > 1 else ("was", "has")
        sentences.append(
            f"{format_list(scored)} {were} asked as everybody asks, and {have} no rank."
        )
    if declared:
        sentences.append(f"{format_list(declared)}: known from elsewhere, and never asked here.")
    return " ".join(sentences)


def _describe_finals(board: Mapping[str, Any]) -> str:
    """Return how the final ranking is made.

    >>> print(_describe_finals({"status": "open", "finals": {"selections": 2}}))
    When the organiser closes the board, the final ranking is made on private examples that no
    question was about. Every team selects up to 2 submissions for it; where it selects none, its
    last 2 count, those that improved before the others. The best of them is ranked.
    >>> print(_describe_finals({"status": "closed", "finals": {"selections": 1}}))
    When the board was closed, the final ranking was made on private examples that no question was
    about. Every team could select 1 submission for it; where it selected none, its last one
    counted, one that improved before others.
    """
    finals = board["finals"]
    selections = 1 if finals is None else finals["selections"]
    private = (
        "on private examples that no question was about"
        if finals is not None
        else "on the private examples, if the board has some, which no question was about"
    )
    if board["status"] == "closed":
        last = "last one counted, one that improved before others"
        if selections > 1:
            last = f"last {selections} counted, those that improved before the others"
        up_to = "up to " if selections > 1 else ""
        best = "" if selections == 1 else " The best of them was ranked."
        return (
            f"When the board was closed, the final ranking was made {private}. Every team could "
            f"select {up_to}{count(selections, 'submission')} for it; where it selected none, its "
            f"{last}.{best}"
        )
    last = (
        " last one counts, one that improved before others"
        if selections == 1
        else f" last {selections} count, those that improved before the others"
    )
    best = "" if selections == 1 else " The best of them is ranked."
    return (
        f"When the organiser closes the board, the final ranking is made {private}. Every team "
        f"selects up to {count(selections, 'submission')} for it; where it selects none, its"
        f"{last}.{best}"
    )


def explain_scores(
    board: Mapping[str, Any], point: Mapping[str, Any] | None, gain: str | None
) -> list[tuple[str, str]]:
    """Return terms of the board's page with their explanations.

    ``point`` is the last point of the board's history, if any; ``gain`` the gain, as displayed,
    below which an improvement may not be detected, None if all are shown or it is unknown.
    """
    entries = [("Released", _explain_released(board)), ("Improved", _explain_improved(board, gain))]
    if board["bound"] is not None:  # None while the standings are hidden
        entries.append(("Bound", explain_bound(board, point)))
    return [*entries, ("What it does not mean", _explain_limits(board))]


def _explain_released(board: Mapping[str, Any]) -> str:
    mechanism, name = board["mechanism"]["mechanism"], board["display"]["name"]
    examples = count(board["n"], "hidden example")
    whose = "the best submission" if board["ladder"] == "board" else "a team's best submission"
    if mechanism in SCORED_EVERY_TIME:
        how = SCORED_EVERY_TIME[mechanism]
        return (
            f"A released number is the {name} of {whose} on {examples}{how}. Every submission is "
            "told its own, so whoever asks often enough can climb without a better model."
        )
    if mechanism == "one_bit":
        return (
            f"No number is released before the close: only whether {whose} on {examples} improved."
        )
    how = "by more than the standard error of the difference"
    if mechanism != "parameter_free_ladder":
        how = f"by enough, rounded{' and with noise' if mechanism == 'shaky_ladder' else ''}"
    return (
        f"A released number is about the {name} of {whose} on {examples}. A new one is told only "
        f"when a submission beats the one before {how}. The exact score of every file is not told: "
        "people could climb by asking again and again, without better models."
    )


def _explain_improved(board: Mapping[str, Any], gain: str | None) -> str:
    sentence = "A submission improved if it made the released number better."
    if board["mechanism"]["mechanism"] in SCORED_EVERY_TIME:
        return sentence
    limit = "" if gain is None else f" {format_undetected_gains(gain)}"
    return f"{sentence} A submission without a measured improvement may still be better.{limit}"


def explain_bound(board: Mapping[str, Any], point: Mapping[str, Any] | None) -> str:
    """Return the bound on the best model so far, and its conditions.

    >>> display = {"name": "accuracy", "digits": 2}
    >>> board = {"beta": 0.05, "display": display, "takes": "predictions"}
    >>> bound = {"least": 0.2, "vacuous": False, "display": {"low": 0.7, "high": 0.85}}
    >>> point = {"used": 12, "released": 0.2, "bound": bound}
    >>> print(explain_bound(board, point))
    With confidence 95%, the true accuracy of the best model asked so far lies between 0.70 and
    0.85. This counts all 12 questions of all teams together, and holds at all times at once,
    whatever they try, even if they work together. True means over fresh labels for these same
    examples; for models that were made without a look at the test inputs, over fresh data of the
    same kind. It holds if the examples are independent, and if nothing public but the answers of
    this board, the organiser's acts included, depends on their labels.
    """
    name, digits = board["display"]["name"], board["display"]["digits"]
    if point is None:
        return "Once a number is released, this says where the best model's true score lies."
    if point["bound"]["vacuous"]:
        return (
            f"After {count(point['used'], 'question')} nothing can be promised about the true "
            f"{name} of the best model that was not known before: there are too few examples for "
            "so many answers, or this way of answering bears no promise."
        )
    low, high = (f"{point['bound']['display'][end]:.{digits}f}" for end in ("low", "high"))
    hidden = ""
    if point["bound"]["least"] < point["released"]:
        hidden = " That is a model of a team that was disqualified, and is not shown."
    return (
        f"With confidence {confidence_percent(board['beta'])}%, the true {name} of the best model "
        f"asked so far lies between {low} and {high}.{hidden} This counts all "
        f"{count(point['used'], 'question')} of "
        "all teams together, and holds at all times at once, whatever they try, even if they work "
        f"together. {_BOUND_CONDITIONS[board['takes']]}"
        f"{_CORRECTED_LABELS if board.get('epoch') else ''}"
    )


def _explain_limits(board: Mapping[str, Any]) -> str:
    text = "A rank is no proof: teams that stand close together may be in another order."
    if board["mechanism"]["mechanism"] not in SCORED_EVERY_TIME:
        text += " A number that does not move does not mean that nothing got better."
    text += " The bound is about the best of all models, not about every row."
    if board["finals"] is not None:
        text += " The final ranking is made on other examples, so it may differ from this one."
    return text
