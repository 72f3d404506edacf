"""The rules of a board in words: full sentences, and nothing that one must guess."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ladderboard.server._pages._words import count, is_over, listed, size, stretch, when

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["EVERY", "rules_in_words"]

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
EVERY = {"exact": "", "rounded": ", rounded", "noisy": ", with noise"}
"""What tells a number about every submission, and how."""
_REGISTRATION = {
    "open": "Anyone can register a team.",
    "invited": "A team needs an invitation, which the organiser gives; each is good for one team.",
    "organiser": "The organiser makes the teams, and gives each its token.",
}
_REGISTERED = {
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


def rules_in_words(board: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the rules, each with what it is about; texts that are Markup hold times."""
    found = [
        ("Score", _score(board)),
        ("Files", _files(board)),
        ("Questions", _questions(board)),
        ("What is told", _ladder(board)),
        ("When", _when(board)),
        ("Taking part", _taking_part(board)),
        ("Baselines", _baselines(board)),
        ("At the end", _end(board)),
        ("Who sees what", _VISIBILITY[board["visibility"]]),
    ]
    return [(about, text) for about, text in found if text]


def _score(board: Mapping[str, Any]) -> str:
    """Say how a submission is scored.

    >>> print(_score({"display": {"name": "accuracy", "as": "complement", "direction": "higher",
    ...     "digits": 3}, "loss": {"name": "zero_one"}, "n": 1000, "takes": "predictions"}))
    Submissions are scored by accuracy; higher is better. For each of 1,000 hidden public examples,
    a prediction costs 0 if it is the label, and 1 if it is not; a score is the mean over them.
    The number shown is 1 less this mean, to 3 digits.
    >>> print(_score({"display": {"name": "score", "as": "complement", "direction": "higher",
    ...     "digits": 3}, "loss": {"name": "shortfall"}, "n": 1000, "takes": "scores"}))
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
    told = _LOSSES.get(name, f"the loss {name} says what a prediction costs, from 0 to 1")
    told = told.format(**{key: value for key, value in loss.items() if key != "name"})
    return (
        f"Submissions are scored by {display['name']}; {display['direction']} is better. "
        f"For each of {board['n']:,} hidden public examples, {told}; a score is the mean over "
        f"them. {_SCALES[display['as']]}, to {count(display['digits'], 'digit')}."
    )


def _files(board: Mapping[str, Any]) -> str:
    limit = board["files"]
    return (
        f"A file has a row for each of the {board['rows']:,} ids: a column id, and the "
        f"{board['takes']} beside it. CSV, TSV, Parquet, Arrow, JSON Lines and .npy are read, "
        f"packed with gzip or not; unpacked, a file has at most {size(limit['bytes'])} and "
        f"{count(limit['rows'], 'row')}."
    )


def _questions(board: Mapping[str, Any]) -> str:
    """Say how much may be asked.

    >>> print(_questions({"questions": 1001, "baselines": [{"file": "a.csv"}], "teams": 40,
    ...     "share": 25, "per_team": 30, "window": {"questions": 5, "seconds": 86400},
    ...     "takes": "predictions"}))
    Every file that is scored is a question. The board answers 1,001 questions in all, 1 of them
    for the baseline. 25 questions are kept for each of at most 40 teams, and nobody else can use
    them. A team may ask 30 questions in all, and at most 5 in any 24 hours. A file that is
    refused, or the same predictions sent again, costs nothing.
    """
    asked = sum("file" in each for each in board["baselines"])
    share, most = board["share"], board["per_team"]
    pool = board["questions"] - asked - board["teams"] * share
    said = ["Every file that is scored is a question."]
    minus = f", {asked:,} of them for the baseline{'s' if asked > 1 else ''}" if asked else ""
    said.append(f"The board answers {count(board['questions'], 'question')} in all{minus}.")
    be = "is" if share == 1 else "are"
    said.append(
        f"{count(share, 'question')} {be} kept for each of at most {count(board['teams'], 'team')},"
        " and nobody else can use them."
    )
    window = board["window"]
    within = (
        ""
        if window is None
        else f", and at most {window['questions']:,} in any {stretch(window['seconds'])}"
    )
    beyond = ""
    if most > share and pool > 0:
        beyond = (
            f"; what goes beyond its {share:,} comes out of a pool of {pool:,}, first come, first "
            "served"
        )
    said.append(f"A team may ask {count(most, 'question')} in all{within}{beyond}.")
    same = board["takes"]
    said.append(f"A file that is refused, or the same {same} sent again, costs nothing.")
    return " ".join(said)


def _ladder(board: Mapping[str, Any]) -> str:
    """Say what an answer holds.

    >>> print(_ladder({"ladder": "team", "mechanism": {"mechanism": "rounded", "digits": 2}}))
    Every submission is told its own score, rounded; the standings show each team's best.
    """
    name = board["mechanism"]["mechanism"]
    whole = board["ladder"] == "board"
    if name in EVERY:
        best = "the best of all teams" if whole else "each team's best"
        return f"Every submission is told its own score{EVERY[name]}; the standings show {best}."
    best = "the best of all teams" if whole else "the best of its own team"
    if name == "one_bit":
        return f"A submission is told only whether it beats {best}; numbers come at the close."
    if whole:
        return (
            "The whole board has one ladder: only a submission that beats the best of all teams is "
            "told a number. All others hear that the best stays what it is."
        )
    return (
        "Every team has a ladder of its own: a submission is told a number when it beats the best "
        "of its own team, whatever the others have."
    )


def _when(board: Mapping[str, Any]) -> str:
    """Say when questions are answered.

    >>> print(_when({"status": "open", "phases": [{"name": "main", "start": None, "end": None}]}))
    Questions are answered at any time, until the organiser closes the board.
    """
    phases = board["phases"]
    if is_over(board):
        return "The board takes no more questions."
    if len(phases) == 1 and phases[0]["start"] is phases[0]["end"] is None:
        return "Questions are answered at any time, until the organiser closes the board."
    said = [
        Markup("{}{}{}").format(
            f"in the phase {each['name']} " if len(phases) > 1 else "",
            "" if each["start"] is None else Markup("from {} ").format(when(each["start"])),
            "without an end"
            if each["end"] is None
            else Markup("until {}").format(when(each["end"])),
        )
        for each in phases
    ]
    return Markup("Questions are answered {}. When a request arrives decides.").format(
        Markup("; ").join(said)
    )


def _taking_part(board: Mapping[str, Any]) -> str:
    """Say who takes part.

    >>> board = {"status": "closed", "registration": "open", "teams": 9, "takes": "predictions"}
    >>> _taking_part(board)
    'Anyone could register a team. There were at most 9 teams.'
    """
    if board["status"] == "closed":
        scores = " Evaluators handed in the scores of its models."
        return (
            f"{_REGISTERED[board['registration']]} There were at most "
            f"{count(board['teams'], 'team')}.{scores if board['takes'] == 'scores' else ''}"
        )
    scores = " Evaluators hand in the scores of its models; a team itself cannot submit."
    return (
        f"{_REGISTRATION[board['registration']]} There are at most {count(board['teams'], 'team')}."
        f"{scores if board['takes'] == 'scores' else ''}"
    )


def _baselines(board: Mapping[str, Any]) -> str:
    """Say where the baselines come from.

    >>> _baselines({"baselines": [{"name": "Mean", "file": "mean.csv"}]})
    'Mean was asked as everybody asks, and has no rank.'
    """
    asked = [each["name"] for each in board["baselines"] if "file" in each]
    known = [each["name"] for each in board["baselines"] if "file" not in each]
    said = []
    if asked:
        be, have = ("were", "have") if len(asked) > 1 else ("was", "has")
        said.append(f"{listed(asked)} {be} asked as everybody asks, and {have} no rank.")
    if known:
        said.append(f"{listed(known)}: known from elsewhere, and never asked here.")
    return " ".join(said)


def _end(board: Mapping[str, Any]) -> str:
    """Say how the board ends.

    >>> print(_end({"status": "open", "finals": {"selections": 2}}))
    When the organiser closes the board, the final ranking is made on private examples that no
    question was about. Every team selects up to 2 submissions for it; where it selects none, its
    last 2 count, those that improved before the others. The best of them is ranked.
    >>> print(_end({"status": "closed", "finals": {"selections": 1}}))
    When the board was closed, the final ranking was made on private examples that no question was
    about. Every team could select 1 submission for it; where it selected none, its last one
    counted, one that improved before others.
    """
    finals = board["finals"]
    many = 1 if finals is None else finals["selections"]
    private = (
        "on private examples that no question was about"
        if finals is not None
        else "on the private examples, if the board has some, which no question was about"
    )
    if board["status"] == "closed":
        last = "last one counted, one that improved before others"
        if many > 1:
            last = f"last {many} counted, those that improved before the others"
        up_to = "up to " if many > 1 else ""
        best = "" if many == 1 else " The best of them was ranked."
        return (
            f"When the board was closed, the final ranking was made {private}. Every team could "
            f"select {up_to}{count(many, 'submission')} for it; where it selected none, its {last}."
            f"{best}"
        )
    last = (
        " last one counts, one that improved before others"
        if many == 1
        else (f" last {many} count, those that improved before the others")
    )
    best = "" if many == 1 else " The best of them is ranked."
    return (
        f"When the organiser closes the board, the final ranking is made {private}. Every team "
        f"selects up to {count(many, 'submission')} for it; where it selects none, its{last}.{best}"
    )
