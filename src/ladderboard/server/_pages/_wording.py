"""Texts on the pages: counts, times, sizes, a board's rules and the meaning of its scores."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from ladderboard._formatting import (
    format_confidence,
    format_interval,
    format_list,
    format_promise_beside,
    format_size,
    format_status,
    format_time,
    rough_duration,
    round_up,
)
from ladderboard.bounds import NO_THEOREM
from ladderboard.losses import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ladderboard.board import DisplayRules
    from ladderboard.files import DeclaredColumns
    from ladderboard.losses import Loss
    from ladderboard.mechanisms import Mechanism

FILE_FORMATS = (
    "CSV, TSV, Parquet, Arrow or Feather, JSON Lines, or a NumPy .npy array; also compressed "
    "with gzip, or alone in a zip."
)
_MAX_COLUMNS_NAMED = 6
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_SCALES = {
    "loss": "The number shown is the mean of these costs",
    "complement": "The number shown is 1 minus the mean of these costs",
    "scaled": "The number shown is the mean of these costs in the metric's own unit",
    "root": "The number shown is the root of the mean of these costs, in the labels' own unit",
}
_MEANS = {"complement": "their mean", "root": "the root of 1 minus their mean"}
_REGISTRATION = {
    "open": "Anyone can register a team.",
    "invited": "A team needs an invitation from the organiser; each is valid for one team.",
    "organiser": "The organiser creates the teams and gives each one its token.",
    "sign_in": "People sign in to register a team. One person has one team.",
}
_REGISTRATION_PAST = {
    "open": "Anyone could register a team.",
    "invited": "A team needed an invitation from the organiser.",
    "organiser": "The organiser created the teams.",
    "sign_in": "People signed in to register a team. One person had one team.",
}
_VISIBILITY = {
    "public": "Everybody sees the standings.",
    "anonymous": "Everybody sees the standings, with ids in place of team names.",
    "frozen": "Others see the standings as they were when the organiser froze them; every team "
    "still sees its own scores.",
    "hidden": "Only the organiser sees the standings; every team sees its own scores.",
}
_BOUND_CONDITIONS = {
    "predictions": "“True” refers to new labels for the same examples. For models built without "
    "seeing the test inputs it also covers new data of the same kind. This assumes that examples "
    "are independent, and that nothing else made public depends on their labels.",
    "scores": "“True” refers to new examples of the same kind, scored in the same way, for models "
    "built without seeing these. This assumes that examples are independent, that the evaluators' "
    "scores are right, and that nothing else made public depends on them.",
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


def parse_time(text: str) -> int:
    """Return an ISO 8601 time in seconds since 1970.

    >>> parse_time("1970-01-01T00:01:00Z")
    60
    """
    return int(datetime.fromisoformat(text).timestamp())


def next_minute(time: str) -> str:
    """Return an ISO 8601 time rounded up to the minute, for times from which something is allowed.

    >>> next_minute("1970-01-01T00:01:01Z"), next_minute("1970-01-01T00:01:00Z")
    ('1970-01-01T00:02:00Z', '1970-01-01T00:01:00Z')
    """
    return format_time(-(-parse_time(time) // 60) * 60)


def relative_time(time: str, now: int) -> str:
    """Return the time until or since a time.

    >>> relative_time("1970-01-03T00:00:00Z", 0), relative_time("1970-01-01T00:00:00Z", 7200)
    ('in 2 days', '2 hours ago')
    >>> relative_time("1970-01-01T00:00:00Z", 59)
    'just now'
    """
    seconds = parse_time(time) - now
    if -60 < seconds <= 0:
        return "just now"
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


def time_element(time: str) -> Markup:
    """Return an ISO 8601 time as a ``<time>`` element; a script changes it to local time.

    >>> print(time_element("2026-11-16T14:05:00Z"))
    <time datetime="2026-11-16T14:05:00Z">2026-11-16 14:05 UTC</time>
    """
    return Markup('<time datetime="{}">{} {} UTC</time>').format(time, time[:10], time[11:16])


def relative_element(time: str, now: int) -> Markup:
    """Return how long ago a time was as a ``<time>`` element, with the time as its tooltip.

    >>> print(relative_element("1970-01-01T00:00:00Z", 7200))
    <time datetime="1970-01-01T00:00:00Z" title="1970-01-01 00:00 UTC">2 hours ago</time>
    """
    return Markup('<time datetime="{}" title="{} {} UTC">{}</time>').format(
        time, time[:10], time[11:16], relative_time(time, now)
    )


_ACRONYMS = {
    word.lower()
    for recipe in METRICS.values()
    for word in re.findall(r"\w+", recipe.title or "")
    if sum(not letter.islower() for letter in word) > 1
}


def metric_title(name: str) -> str:
    """Return the name of a metric for a heading.

    >>> metric_title("accuracy"), metric_title("rmse"), metric_title("log loss"), metric_title("F1")
    ('Accuracy', 'RMSE', 'Log loss', 'F1')
    """
    return name.upper() if name in _ACRONYMS else name[:1].upper() + name[1:]


class BoardState(NamedTuple):
    """The state of a board: a label, the CSS class of its badge, a sentence, when it opens."""

    label: str
    badge_class: str
    sentence: str
    opens: str | None = None


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
    label = format_status(board, now)
    starts = [phase["start"] for phase in board["phases"] if phase["start"] is not None]
    coming = next((start for start in starts if parse_time(start) > now), None)
    if coming is None:
        return BoardState(
            label, "badge-wait", "The deadline has passed. The organiser will close the board."
        )
    coming = next_minute(coming)
    sentence = Markup("Submissions open {}: {}.").format(
        relative_time(coming, now), time_element(coming)
    )
    return BoardState(label, "badge-wait", sentence, coming)


def describe_rules(
    board: Mapping[str, Any],
    loss: Loss,
    mechanism: Mechanism,
    columns: DeclaredColumns | None,
    *,
    ranked: bool,
) -> list[tuple[str, str]]:
    """Return the rules as pairs of a topic and a text; texts with times are Markup.

    ``columns`` are the declared columns of a submission, ``ranked`` whether private examples are
    kept for a final ranking.
    """
    rules = [
        ("Score", _describe_score(board, loss)),
        ("Further metrics", describe_further_metrics(board)),
        ("Files", _describe_files(board, columns)),
        ("Submissions", _describe_submissions(board)),
        ("What you see", _describe_answers(board, mechanism)),
        ("When", _describe_phases(board)),
        ("Taking part", _describe_registration(board)),
        ("Baselines", _describe_baselines(board)),
        ("At the end", _describe_finals(board, ranked=ranked)),
        ("Prizes", _describe_prizes(board)),
        ("Who sees what", _VISIBILITY[board["visibility"]]),
    ]
    return [(topic, text) for topic, text in rules if text]


def _describe_score(board: Mapping[str, Any], loss: Loss) -> str:
    """Return how submissions are scored.

    >>> display = {"name": "accuracy", "as": "complement", "direction": "higher", "digits": 3}
    >>> board = {"display": display, "n": 1000, "takes": "predictions"}
    >>> from ladderboard.losses import Shortfall, ZeroOne, loss
    >>> print(_describe_score(board, ZeroOne()))
    Submissions are scored by accuracy; higher is better. The score is the share of the 1,000
    leaderboard examples that a file predicts correctly. It has at most 3 decimals.
    >>> display |= {"name": "F1"}
    >>> print(_describe_score(board, loss("f1", classes=("stayed", "churned"))))
    Submissions are scored by F1; higher is better. It is computed from how often class 'churned'
    occurs, is predicted and is predicted rightly, in the 1,000 public examples, whose labels are
    hidden. The number shown has at most 3 decimals.
    >>> print(_describe_score({**board, "takes": "scores"}, Shortfall()))
    Evaluators give a score from 0 to 1, the best, to each of 1,000 hidden public examples. The
    number shown is their mean, to at most 3 decimals; higher is better.
    """
    display = board["display"]
    if board["takes"] == "scores":
        return (
            f"Evaluators give a score from 0 to 1, the best, to each of {board['n']:,} hidden "
            f"public examples. The number shown is "
            f"{_MEANS.get(display['as'], '1 minus their mean')}, to at most "
            f"{count(display['digits'], 'decimal')}; {display['direction']} is better."
        )
    start = f"Submissions are scored by {display['name']}; {display['direction']} is better. "
    examples = f"the {board['n']:,} public examples, whose labels are hidden"
    digits = count(display["digits"], "decimal")
    if loss.success and display["as"] == "complement":
        return (
            f"{start}The score is the share of the {board['n']:,} leaderboard examples "
            f"{loss.success}. It has at most {digits}."
        )
    if not loss.is_mean:
        return (
            f"{start}It is computed from {loss.explanation}, in {examples}. The number shown has "
            f"at most {digits}."
        )
    return (
        f"{start}For each of {examples}, {loss.explanation}. {_SCALES[display['as']]}, to at most "
        f"{digits}."
    )


def _describe_files(board: Mapping[str, Any], columns: DeclaredColumns | None) -> str:
    """Return what a file must hold.

    >>> from ladderboard.files import DeclaredColumns
    >>> board = {"files": {"bytes": 2**20, "rows": 1000}, "rows": 10, "takes": "predictions"}
    >>> print(_describe_files(board, DeclaredColumns(("image",), ("x", "y"))).partition(". ")[0])
    A file has a row for each of the 10 ids: ids in the column image, predictions in x and y
    """
    limit, takes = board["files"], board["takes"]
    needed = f"a column id, and the {takes} beside it"
    if columns is not None and (columns.id or columns.submitted):
        needed = f"ids in the column{'s' * (len(columns.id) > 1)} {_name_columns(columns.id)}, "
        needed += f"{takes} in {_name_columns(columns.submitted, 'the other columns')}"
    return (
        f"A file has a row for each of the {board['rows']:,} ids: {needed}. It may be "
        f"{FILE_FORMATS} Unpacked, it has at most {format_bytes(limit['bytes'])}."
    )


def _name_columns(names: tuple[str, ...], otherwise: str = "id") -> str:
    """Return the first few names of columns, and how many more there are."""
    listed = list(names[:_MAX_COLUMNS_NAMED]) or [otherwise]
    rest = len(names) - len(listed)
    return format_list([*listed, *([f"{rest:,} more"] if rest > 0 else [])])


def _describe_submissions(board: Mapping[str, Any]) -> str:
    """Return how many submissions are allowed.

    >>> print(_describe_submissions({"questions": 1001, "baselines": [{"file": "a.csv"}],
    ...     "teams": 40,
    ...     "share": 25, "per_team": 30, "window": {"questions": 5, "seconds": 86400},
    ...     "takes": "predictions"}))
    Every scored file counts as one submission. The board takes 1,001 submissions in all, 1 of them
    for the baseline. 25 submissions are reserved for each of up to 40 teams. A team may make 30
    submissions in all, and at most 5 in any 24 hours. Refused files and duplicates of the same
    predictions do not count.
    """
    baseline_count = sum("file" in baseline for baseline in board["baselines"])
    share, limit = board["share"], board["per_team"]
    pool = board["questions"] - baseline_count - board["teams"] * share
    sentences = ["Every scored file counts as one submission."]
    for_baselines = ""
    if baseline_count:
        plural = "s" if baseline_count > 1 else ""
        for_baselines = f", {baseline_count:,} of them for the baseline{plural}"
    sentences.append(
        f"The board takes {count(board['questions'], 'submission')} in all{for_baselines}."
    )
    window = board["window"]
    window_rule = (
        ""
        if window is None
        else f", and at most {window['questions']:,} in any {exact_duration(window['seconds'])}"
    )
    if limit > share:
        verb = "is" if share == 1 else "are"
        pool_rule = (
            f"; those beyond its {share:,} come out of a shared pool of {pool:,}, first come, "
            "first served"
            if pool > 0
            else ""
        )
        sentences.append(
            f"{count(share, 'submission')} {verb} reserved for each of up to "
            f"{count(board['teams'], 'team')}. A team may make {count(limit, 'submission')} in all"
            f"{window_rule}{pool_rule}."
        )
    else:
        sentences.append(
            f"Each of up to {count(board['teams'], 'team')} may make {count(limit, 'submission')} "
            f"in all{window_rule}."
        )
    takes = board["takes"]
    sentences.append(f"Refused files and duplicates of the same {takes} do not count.")
    return " ".join(sentences)


def _altered_how(mechanism: Mechanism) -> str:
    return f", {mechanism.altered_how}" if mechanism.altered_how else ""


def _describe_answers(board: Mapping[str, Any], mechanism: Mechanism) -> str:
    """Return what an answer reveals.

    >>> from ladderboard.mechanisms import Rounded
    >>> print(_describe_answers({"ladder": "team"}, Rounded(digits=2)))
    Every submission gets its own score, rounded; the standings show each team's best.
    """
    is_shared = board["ladder"] == "board"
    if mechanism.scores_every_question:
        best = "the best of all teams" if is_shared else "each team's best"
        how = _altered_how(mechanism)
        return f"Every submission gets its own score{how}; the standings show {best}."
    best = "the best of all teams" if is_shared else "the best of its team"
    if mechanism.hides_value:
        return (
            f"You see only whether a submission beats {best}. Scores are published when the board "
            "closes."
        )
    if is_shared:
        return (
            "All teams share one best score: a new score is shown only when a submission beats it. "
            "Otherwise the best is unchanged."
        )
    return (
        "Each team has its own ladder: a new score is shown when a submission beats that team's "
        "best, regardless of other teams."
    )


def _describe_phases(board: Mapping[str, Any]) -> str:
    """Return when submissions are taken.

    >>> phase = {"name": "main", "start": None, "end": None}
    >>> print(_describe_phases({"status": "open", "phases": [phase]}))
    Submissions are taken at any time, until the organiser closes the board.
    """
    phases = board["phases"]
    if is_over(board):
        return "The board takes no more submissions."
    if len(phases) == 1 and phases[0]["start"] is phases[0]["end"] is None:
        return "Submissions are taken at any time, until the organiser closes the board."
    times = [
        Markup("{}{}{}").format(
            f"in the phase {phase['name']} " if len(phases) > 1 else "",
            ""
            if phase["start"] is None
            else Markup("from {} ").format(time_element(next_minute(phase["start"]))),
            "without an end"
            if phase["end"] is None
            else Markup("until {}").format(time_element(phase["end"])),
        )
        for phase in phases
    ]
    return Markup("Submissions are taken {}. The time at which the request arrives counts.").format(
        Markup("; ").join(times)
    )


def _describe_registration(board: Mapping[str, Any]) -> str:
    """Return how teams register.

    >>> board = {"status": "closed", "registration": "open", "teams": 9, "takes": "predictions"}
    >>> _describe_registration(board)
    'Anyone could register a team. There were at most 9 teams.'
    """
    if board["status"] == "closed":
        scores = " Evaluators submitted the scores of its models."
        return (
            f"{_REGISTRATION_PAST[board['registration']]} There were at most "
            f"{count(board['teams'], 'team')}.{scores if board['takes'] == 'scores' else ''}"
        )
    scores = " Evaluators submit the scores of its models; teams cannot submit."
    return (
        f"{_REGISTRATION[board['registration']]} There are at most {count(board['teams'], 'team')}."
        f"{scores if board['takes'] == 'scores' else ''}"
    )


def _describe_baselines(board: Mapping[str, Any]) -> str:
    """Return where the baselines come from.

    >>> _describe_baselines({"baselines": [{"name": "Mean", "file": "mean.csv"}]})
    "Mean was submitted and scored like any team's files. Baselines are not ranked."
    """
    scored = [baseline["name"] for baseline in board["baselines"] if "file" in baseline]
    declared = [baseline["name"] for baseline in board["baselines"] if "file" not in baseline]
    sentences = []
    if scored:
        were = "were" if len(scored) > 1 else "was"
        sentences.append(
            f"{format_list(scored)} {were} submitted and scored like any team's files. Baselines "
            "are not ranked."
        )
    if declared:
        sentences.append(f"{format_list(declared)}: declared by the organiser, not scored here.")
    return " ".join(sentences)


def describe_further_metrics(board: Mapping[str, Any]) -> str:
    """Return which metrics there are besides the first, and which of them decides.

    >>> board = {"display": {"name": "AUC"}, "leaderboard_metric": "mean_rank",
    ...          "final_metric": "log loss", "status": "open"}
    >>> log_loss = {"name": "log loss", "direction": "lower", "show": "live"}
    >>> board["metrics"] = [log_loss, {"name": "F1", "direction": "higher", "show": "close"}]
    >>> print(describe_further_metrics(board))
    Each submission is also answered by log loss (lower is better), whose numbers are made less
    exact in the same way. The leaderboard is ordered by the mean of a team's ranks in AUC and log
    loss. When the board is closed, the final ranking shows all metrics exactly, also F1 (higher is
    better). It is ranked by log loss.
    """
    live, at_close = (
        [
            f"{item['name']} ({item['direction']} is better)"
            for item in board["metrics"]
            if item["show"] == show
        ]
        for show in ("live", "close")
    )
    if not live and not at_close:
        return ""
    live_names = [item["name"] for item in board["metrics"] if item["show"] == "live"]
    ranked_by = board["final_metric"] or board["display"]["name"]
    if ranked_by == "mean_rank":
        ranked_by = "the mean of the ranks in all metrics"
    when = "was" if board["status"] == "closed" else "is"
    sentences = []
    if live:
        sentences.append(
            f"Each submission {when} also answered by {format_list(live)}, whose numbers are made "
            "less exact in the same way."
        )
    if board["leaderboard_metric"] == "mean_rank":
        sentences.append(
            f"The leaderboard {when} ordered by the mean of a team's ranks in "
            f"{format_list([board['display']['name'], *live_names])}."
        )
    also = f", also {format_list(at_close)}" if at_close else ""
    sentences.append(
        f"When the board {when} closed, the final ranking shows all metrics exactly{also}. It "
        f"{when} ranked by {ranked_by}."
    )
    return " ".join(sentences)


_PRIZE_WINNERS = {
    "range": "every team whose range of ranks includes {}",
    "band": "every team in band {}",
    "rank": "the team with rank {}",
}


def describe_prize(prize: Mapping[str, Any]) -> str:
    """Return which teams get a prize.

    >>> describe_prize({"name": "First prize", "place": 1, "to": "range"})
    'First prize: every team whose range of ranks includes 1'
    """
    return f"{prize['name']}: {_PRIZE_WINNERS[prize['to']].format(prize['place'])}"


def _describe_prizes(board: Mapping[str, Any]) -> str:
    """Return the prizes, and what their words mean; empty without prizes.

    >>> print(_describe_prizes({"prizes": [{"name": "First prize", "place": 1, "to": "band"}]}))
    First prize: every team in band 1. Teams of one band cannot be told apart from the first of
    them on the private examples.
    """
    sentences = [f"{describe_prize(prize)}." for prize in board["prizes"]]
    targets = {prize["to"] for prize in board["prizes"]}
    if "range" in targets:
        sentences.append(
            "A team's range is the set of ranks it may truly have, judged from the private "
            "examples."
        )
    if "band" in targets:
        sentences.append(
            "Teams of one band cannot be told apart from the first of them on the private examples."
        )
    return " ".join(sentences)


def _describe_finals(board: Mapping[str, Any], *, ranked: bool) -> str:
    """Return how the final ranking is made.

    >>> print(_describe_finals({"status": "open", "finals": {"selections": 2}}, ranked=True))
    When the organiser closes the board, the final ranking is made on private examples that no
    earlier score used. Every team selects up to 2 submissions for it; if it selects none, its 2
    submissions with the best exact public scores count. The best of them is ranked.
    >>> print(_describe_finals({"status": "closed", "finals": None}, ranked=True))
    When the board was closed, the final ranking was made on private examples that no earlier score
    used. Every team could select 1 submission for it; if it selected none, its submission with the
    best exact public score counted.
    >>> _describe_finals({"status": "open", "finals": None}, ranked=False)
    'No examples are kept for a final ranking: the leaderboard at the close is final.'
    """
    if not ranked:
        return "No examples are kept for a final ranking: the leaderboard at the close is final."
    finals = board["finals"]
    selections = 1 if finals is None else finals["selections"]
    private = "on private examples that no earlier score used"
    by_default = (
        "its submission with the best exact public score"
        if selections == 1
        else f"its {selections} submissions with the best exact public scores"
    )
    up_to = "up to " if selections > 1 else ""
    if board["status"] == "closed":
        best = "" if selections == 1 else " The best of them was ranked."
        return (
            f"When the board was closed, the final ranking was made {private}. Every team could "
            f"select {up_to}{count(selections, 'submission')} for it; if it selected none, "
            f"{by_default} counted.{best}"
        )
    counts = "counts" if selections == 1 else "count"
    best = "" if selections == 1 else " The best of them is ranked."
    return (
        f"When the organiser closes the board, the final ranking is made {private}. Every team "
        f"selects {up_to}{count(selections, 'submission')} for it; if it selects none, "
        f"{by_default} {counts}.{best}"
    )


def summarize_scores(
    board: Mapping[str, Any],
    mechanism: Mechanism,
    *,
    private: int | None = None,
    ranked: bool = False,
) -> str:
    """Return in one line what a score on the board means.

    ``private`` is the number of examples of the final ranking, if there is one; ``ranked`` whether
    there will be one.

    >>> from ladderboard.mechanisms import Exact, Ladder
    >>> board = {"n": 2500, "display": {"name": "accuracy"}, "ladder": "team"}
    >>> print(summarize_scores(board, Ladder(step=0.01)))
    A score is close to the accuracy of a team's best submission on 2,500 hidden examples. It
    changes only when a submission is clearly better.
    >>> print(summarize_scores(board, Ladder(step=0.01), private=400, ranked=True))
    Final scores are the accuracy on 400 private examples. A public score is close to the accuracy
    of a team's best submission on 2,500 other hidden examples. It changes only when a submission is
    clearly better.
    """
    whose = "the best submission" if board["ladder"] == "board" else "a team's best submission"
    examples, name = count(board["n"], "hidden example"), board["display"]["name"]
    final, score = "", "A score"
    if private is not None:
        final = f"Final scores are the {name} on {count(private, 'private example')}. "
        score, examples = "A public score", count(board["n"], "other hidden example")
    elif ranked:
        examples += "; others are kept for the final ranking"
    if mechanism.scores_every_question:
        return f"{final}{score} is the {name} of {whose} on {examples}{_altered_how(mechanism)}."
    if mechanism.hides_value:
        return final or (
            f"Scores are published at the close; until then you see only whether {whose} improved."
        )
    return (
        f"{final}{score} is close to the {name} of {whose} on {examples}. It changes only when a "
        "submission is clearly better."
    )


def explain_scores(
    board: Mapping[str, Any],
    mechanism: Mechanism,
    display: DisplayRules,
    point: Mapping[str, Any] | None,
    gains: str,
    *,
    proven: bool = False,
) -> list[tuple[str, str]]:
    """Return terms of the board's page with their explanations.

    ``point`` is the last point of the board's history, if any; ``gains`` the sentence on the
    smallest gains that show; ``proven`` is whether a score is marked as proven.
    """
    entries = [
        ("Score", _explain_score(board, mechanism)),
        ("Improved", _explain_improved(mechanism, gains)),
    ]
    if proven:
        entries.append(("Proven", _explain_proven(board)))
    if board["bound"] is not None:  # None while the standings are hidden
        entries.append(("Bound", explain_bound(board, display, point)))
    bounded = point is not None and board["bound"] is not None
    guaranteed = bounded and has_guarantee(board, display, point)  # type: ignore[arg-type]
    limits = _explain_limits(board, mechanism, guaranteed=guaranteed)
    return [*entries, ("Limits of the scores", limits)]


def _explain_score(board: Mapping[str, Any], mechanism: Mechanism) -> str:
    name, how = board["display"]["name"], _altered_how(mechanism)
    examples = count(board["n"], "hidden example")
    whose = "the best submission" if board["ladder"] == "board" else "a team's best submission"
    if mechanism.scores_every_question:
        return (
            f"A score is the {name} of {whose} on {examples}{how}. Every submission gets its "
            "score, so a team can climb without a better model by submitting often enough."
        )
    if mechanism.hides_value:
        return f"No score is shown before the close, only whether {whose} on {examples} improved."
    return (
        f"A score is close to the {name} of {whose} on {examples}{how}. It changes only when a "
        f"submission beats the one before {mechanism.required_gain}. Exact scores would let teams "
        "climb without better models."
    )


def _explain_improved(mechanism: Mechanism, gains: str) -> str:
    sentence = "A submission improved if it set a new best."
    if mechanism.scores_every_question:
        return sentence
    return f"{sentence} A submission without a measured improvement may still be better. {gains}"


def _explain_proven(board: Mapping[str, Any]) -> str:
    """Return what the mark of a proven score says.

    >>> print(_explain_proven({"beta": 0.05}))
    A score with ✓ was compared with the best before it, example by example, and is proven better.
    With confidence 95%, no ✓ on this board is ever false. A score without it may still be better.
    """
    return (
        "A score with ✓ was compared with the best before it, example by example, and is proven "
        f"better. With confidence {format_confidence(board['beta'])}, no ✓ on this board is ever "
        "false. A score without it may still be better."
    )


def has_guarantee(
    board: Mapping[str, Any], display: DisplayRules, point: Mapping[str, Any]
) -> bool:
    """Tell whether a point of the history limits the true score narrowly enough to be of use."""
    bound, limit = point["bound"], board["bound"]["overfitting"]
    if not bound["vacuous"]:
        return True
    is_shown = bound["least"] >= point["released"]
    return is_shown and limit is not None and display.is_narrow(-limit, limit)


def explain_bound(
    board: Mapping[str, Any], display: DisplayRules, point: Mapping[str, Any] | None
) -> str:
    """Return the bound on the best model so far, and its conditions.

    An interval that is too wide to act on is left out; how much too good the score shown may be is
    not, if that is useful by itself.

    >>> from ladderboard.board import DisplayRules
    >>> display = DisplayRules("accuracy", digits=2, shown_as="complement")
    >>> ends = {"overfitting": 0.1, "hidden": 0.05, "theorem": "Theorem 1"}
    >>> board = {"beta": 0.05, "takes": "predictions", "bound": ends, "finals": None}
    >>> bound = {"least": 0.2, "vacuous": False, "display": {"low": 0.7, "high": 0.85}}
    >>> point = {"used": 12, "released": 0.2, "bound": bound}
    >>> print(explain_bound(board, display, point))
    With confidence 95%, the true accuracy of the best model submitted so far lies between 0.70 and
    0.85. The score shown is at most 0.1 too good. The best model so far may be up to 0.05 better
    than the score shown. This counts all 12 submissions of all teams together, and holds at all
    times at once, whatever they try, even if they work together. “True” refers to new labels for
    the same examples. For models built without seeing the test inputs it also covers new data of
    the same kind. This assumes that examples are independent, and that nothing else made public
    depends on their labels.
    >>> wide = {**point, "bound": {**bound, "vacuous": True}}
    >>> print(explain_bound(board, display, wide)[:64])
    With confidence 95%, the score shown is at most 0.1 too good. Th
    >>> print(explain_bound({**board, "bound": {**ends, "overfitting": 0.4}}, display, wide))
    After 12 submissions there is no useful guarantee for the true accuracy of the best model: the
    board has too few examples for this many submissions.
    """
    if point is None:
        return "Once there is a score, this says where the best model's true score lies."
    bound, limit = point["bound"], board["bound"]["overfitting"]
    is_shown = bound["least"] >= point["released"]
    if not has_guarantee(board, display, point):
        why = (
            "nothing is proved for the way in which it releases scores"
            if board["bound"]["theorem"] == NO_THEOREM
            else "the board has too few examples for this many submissions"
        )
        return (
            f"After {count(point['used'], 'submission')} there is no useful guarantee for the true "
            f"{display.name} of the best model: {why}."
        )
    sure = f"With confidence {format_confidence(board['beta'])}"
    if not bound["vacuous"]:
        ends = format_interval(bound["display"]["low"], bound["display"]["high"], display.digits)
        promise = f"{sure}, the true {display.name} of the best model submitted so far lies "
        promise += f"between {ends[0]} and {ends[1]}. "
        promise += (
            format_promise_beside(
                ends,
                display.text(point["released"]),
                limit,
                board["bound"]["hidden"],
                higher_is_better=display.direction == "higher",
            )
            if is_shown
            else "That model belongs to a disqualified team, which is not shown."
        )
    else:
        promise = f"{sure}, the score shown is at most {round_up(limit, 2)} too good."
    return (
        f"{promise} This counts all {count(point['used'], 'submission')} of all teams together, "
        "and holds at all times at once, whatever they try, even if they work together. "
        f"{_BOUND_CONDITIONS[board['takes']]}{_CORRECTED_LABELS if board.get('epoch') else ''}"
        f"{_hold_with_finals(board)}"
    )


def _hold_with_finals(board: Mapping[str, Any]) -> str:
    """Return how sure one can be of the bounds and of a final ranking's intervals together.

    >>> _hold_with_finals({"finals": {"selections": 1}, "beta": 0.05})
    ' With confidence 90%, the bound and the intervals of the final ranking hold together.'
    """
    if board["finals"] is None:
        return ""
    together = format_confidence(min(2 * board["beta"], 1))
    both = "the bound and the intervals of the final ranking hold together"
    return f" With confidence {together}, {both}."


def _explain_limits(board: Mapping[str, Any], mechanism: Mechanism, *, guaranteed: bool) -> str:
    text = "Ranks are estimates: teams with similar scores may truly be in a different order."
    if not mechanism.scores_every_question:
        text += " An unchanged score can hide a small improvement."
    if guaranteed:
        text += " The bound is about the best of all models, not about every row."
    if board["finals"] is not None:
        text += " The final ranking is made on other examples, so it may differ from this one."
    # Each live metric has a ladder of its own.
    answers = 1 + sum(metric["show"] == "live" for metric in board["metrics"])
    known = mechanism.attacker_accounts(board["teams"] * answers) // answers
    if board["ladder"] == "team" and known < board["teams"]:
        text += f" The protection assumes that one person controls at most {count(known, 'team')}."
        if board["registration"] == "sign_in":
            text += " Somebody with accounts at several providers counts as several people."
    return text
