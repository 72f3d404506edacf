"""Rankings that somebody wrote who owns the server: committed to, and not what was released."""

import copy
import json

import pytest

from ladderboard._formatting import format_time
from ladderboard.files import read_holdout
from ladderboard.holdout import AlignedPredictions
from ladderboard.verify import verify_bundle
from support.verify.board_history import N, close_and_bundle, small_board, submit_predictions
from support.verify.bundle_forge import BundleForge
from support.verify.bundles import read_records

UNASKED = {"baseline": False, "disqualified": False, "rank": None, "released": None, "since": None}
TEAMS_DIFFER = "The final ranking lists other teams"
NAMES_DIFFER = "The final ranking differs from the standings"
FILES_DIFFER = "The final ranking does not match the selected files"
OTHER_BOARD = "The final ranking belongs to another board"
OTHER_TIME = "The final ranking has another closing time"
MALFORMED = "The final ranking is malformed"
SELECTED_TWICE = "A file is selected twice for the final ranking"


def test_an_unchanged_bundle_verifies(forge, write_forged):
    result = verify_bundle(write_forged(forge))
    assert result.risks == result.releases == result.questions == 10
    assert "The final ranking was recomputed from submissions and private labels." in result.checked


def ranked(forge, rank=1):
    """Return the row of the standings with a rank."""
    return next(row for row in forge.standings if row["rank"] == rank)


def team_twice(forge):
    forge.standings.insert(0, {**ranked(forge), "rank": 1, "released": 0.0})


def named_alike(forge):
    forge.standings.append({**UNASKED, "team": "x", "baseline": True, "name": "Coin"})


def more_teams(forge):
    """Add teams that never asked to the three that did; five may take part."""
    forge.standings += [{**UNASKED, "team": f"x{index}", "name": None} for index in range(3)]


def team_missing(forge):
    forge.standings.remove(ranked(forge))


def rerank(forge):
    """Rank the standings anew, and the final ranking with them."""
    released = sorted(row["released"] for row in forge.standings if row["rank"] is not None)
    for row in forge.standings:
        if row["rank"] is not None:
            row["rank"] = 1 + released.index(row["released"])
    forge.rank()


def winner_is_a_baseline(forge, name="Gold"):
    final = next(row for row in forge.finals["rows"] if not row["baseline"])
    row = next(row for row in forge.standings if row["team"] == final["team"]["id"])
    row.update(baseline=True, rank=None, name=name)
    final.update(baseline=True)
    final["team"]["name"] = name
    rerank(forge)


def winner_is_named_like_a_baseline(forge):
    winner_is_a_baseline(forge, "Coin")


def winner_is_disqualified(forge):
    ranked(forge).update(disqualified=True, rank=None)
    rerank(forge)


def baseline_is_a_team(forge):
    row = next(row for row in forge.standings if row["baseline"])
    row.update(baseline=False, rank=1)
    final = next(row for row in forge.finals["rows"] if row["baseline"])
    final.update(baseline=False)
    rerank(forge)


def standing(**changes):
    return lambda forge: ranked(forge).update(changes)


STOOD = {
    "a team twice": (team_twice, "The standings list a team or a name twice"),
    "two baselines of one name": (named_alike, "The standings list a team or a name twice"),
    "a team more": (more_teams, "The standings list more teams than the rules allow"),
    "a team missing": (team_missing, "is missing from the standings"),
    "a winner marked as a baseline": (
        winner_is_a_baseline,
        "The baselines in the standings differ",
    ),
    "and named like one": (
        winner_is_named_like_a_baseline,
        "The standings list a team or a name twice",
    ),
    "a baseline among the teams": (baseline_is_a_team, "The standings have a malformed row"),
    "a team with a name": (standing(name="Red"), "The standings have a malformed row"),
    "a name missing": (lambda forge: forge.names.popitem(), "The bundle names other teams"),
    "a name too many": (lambda forge: forge.names.update(x="Red"), "The bundle names other teams"),
    "a name of a baseline": (
        lambda forge: forge.names.update({forge.standings[0]["team"]: "Coin"}),
        "The bundle names other teams",
    ),
    "a name that is none": (
        lambda forge: forge.names.update(dict.fromkeys(forge.names, 7)),
        "a record 'teams' that is malformed",
    ),
    "another release": (standing(released=0.0), "The standings of team "),
    "another time": (standing(since=1), "The standings of team "),
    "a winner disqualified": (winner_is_disqualified, "The standings of team "),
    "another rank": (standing(rank=2), "The rank of team "),
}


@pytest.mark.parametrize("name", STOOD)
def test_standings_that_do_not_follow_from_the_releases(forge, check_refused, name):
    change, message = STOOD[name]
    change(forge)
    check_refused(forge, message)


def made_up_winner(forge):
    fake = copy.deepcopy(forge.finals["rows"][0])
    fake.update(score=0.0, display=1.0, submission="none")
    forge.finals["rows"].insert(0, fake)
    forge.rank()


def winner_left_out(forge):
    winner = forge.finals["rows"].pop(0)
    for file_record in forge.files(winner["team"]["id"]):
        file_record["selected"] = False
    forge.rank()


def demoted(forge):
    next(row for row in forge.finals["rows"] if not row["baseline"])["baseline"] = True
    forge.rank()


def baseline_renamed(forge):
    next(row for row in forge.finals["rows"] if row["baseline"])["team"]["name"] = "Gold"


def winner_named(forge):
    forge.finals["rows"][0]["team"]["name"] = "Red"


def all_selected(forge):
    """Let a team have three files in the ranking where two are allowed, with the right score."""
    team = forge.of("question")[-1].fields["asker"]
    wrong = {}
    for entry in forge.of("question"):
        if entry.fields["asker"] == team:
            entry.files[0][1]["selected"] = True
            guessed = AlignedPredictions.unpack(entry.files[1][1]).values[200:]
            wrong[entry.files[0][1]["id"]] = sum(
                index % 2 != int(b) for index, b in enumerate(guessed)
            )
    assert len(wrong) == 3
    row = next(row for row in forge.finals["rows"] if row["team"]["id"] == team)
    best = min(wrong, key=wrong.get)
    row.update(submission=best, score=wrong[best] / 100, display=1 - wrong[best] / 100)
    forge.rank()


def none_selected(forge):
    for file_record in forge.files(forge.finals["rows"][0]["team"]["id"]):
        file_record["selected"] = False
    forge.rank()


def other_beta(forge):
    forge.finals["beta"] = 0.9
    forge.rank()


def better_score(forge):
    row = forge.finals["rows"][0]
    row.update(score=row["score"] / 2, display=round(1 - row["score"] / 2, 4))
    forge.rank()


def last_first(forge):
    forge.finals["rows"].reverse()


def final(**changes):
    return lambda forge: forge.finals.update(changes)


def final_row(**changes):
    return lambda forge: forge.finals["rows"][0].update(changes)


RANKED = {
    "a made-up winner": (made_up_winner, TEAMS_DIFFER),
    "a winner left out": (winner_left_out, TEAMS_DIFFER),
    "a winner marked as a baseline": (demoted, MALFORMED),
    "a baseline renamed": (baseline_renamed, NAMES_DIFFER),
    "a team with a name": (winner_named, MALFORMED),
    "more selected than allowed": (all_selected, FILES_DIFFER),
    "nothing selected": (none_selected, FILES_DIFFER),
    "another number of files": (final(selected=1), FILES_DIFFER),
    "other private rows": (final(n=10**6), FILES_DIFFER),
    "another beta": (other_beta, OTHER_BOARD),
    "another board": (final(board="other"), OTHER_BOARD),
    "an older time": (final(closed="1999-01-01T00:00:00Z"), OTHER_TIME),
    "a later time": (final(closed="2999-01-01T00:00:00Z"), OTHER_TIME),
    "something more": (final(sponsor="x"), MALFORMED),
    "something more of a team": (final_row(prize="x"), MALFORMED),
    "a score that is no double": (final_row(score=0), MALFORMED),
    "a score that is none": (final_row(score=None), MALFORMED),
    "the last first": (last_first, "The final ranking is not sorted by score"),
    "a rank": (final_row(rank=2), "The final rank of team "),
    "a public rank": (final_row(public_rank=7, move=6), "The final rank of team "),
    "a move": (final_row(move=9), "The final rank of team "),
    "what is shown": (final_row(display=0.9999), "The displayed number of team "),
    "a better score": (better_score, "The final score of team "),
    "a narrower interval": (final_row(low=0.0), "The final score of team "),
    "another file": (final_row(submission="none"), "The final score of team "),
    "an impossible range of ranks": (final_row(ranks=[9, 9]), "The rank range of team "),
    "no range of ranks": (final_row(ranks=None, band=None), "The rank range of team "),
    "another band": (final_row(band=7), "The rank range of team "),
    "a range of ranks that is none": (final_row(ranks=[1, "x"]), MALFORMED),
}


@pytest.mark.parametrize("name", RANKED)
def test_finals_that_do_not_follow_from_the_files(forge, check_refused, name):
    change, message = RANKED[name]
    change(forge)
    check_refused(forge, message)


def test_a_name_that_comes_twice_in_the_finals(forge, check_refused):
    forge.finals = json.dumps(forge.finals).replace('"n": ', '"n": 1, "n": ', 1)
    check_refused(forge, "The records after the entries")


def test_a_file_that_is_selected_after_both_of_its_entries(forge_corrected, check_refused):
    last = {file["id"]: file for file in forge_corrected.files()}
    again = next(file for file in forge_corrected.files() if file is not last[file["id"]])
    again["selected"] = last[again["id"]]["selected"] = True
    check_refused(forge_corrected, SELECTED_TWICE)


def test_uncommitted_standings_are_reported_as_unchecked(forge, write_forged):
    forge.standings = None
    assert (
        "The standings were not checked: the last entry does not commit to them."
        in verify_bundle(write_forged(forge)).unchecked
    )


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("teams", "The bundle holds a record 'end' that is malformed or in the wrong position"),
        ("standings", "The standings are missing from the bundle"),
        ("finals", "The final ranking does not match its commitment"),
    ],
)
def test_what_is_committed_to_and_was_taken_out(forge, check_refused, kind, message):
    remaining = [record for record in forge.records() if record[0] != kind]
    forge.records = lambda: remaining
    check_refused(forge, message)


def test_private_rows_without_a_final_ranking(forge, check_refused):
    forge.finals = None
    check_refused(
        forge, "There are private rows, but the closing entry commits to no final ranking."
    )


def test_without_labels_a_missing_final_ranking_is_reported_as_unchecked(forge, write_forged):
    forge.finals, forge.samples = None, []
    forge.head["labels"] = False
    unchecked = verify_bundle(write_forged(forge)).unchecked
    assert any(line.startswith("The bundle has no final ranking.") for line in unchecked)


def test_a_final_ranking_without_private_rows(tmp_path, check_refused):
    table = read_holdout({"id": list(range(N)), "label": [0, 1] * (N // 2)})
    more = {"finals": None, "baselines": None, "ladder": "team"}
    with small_board(tmp_path, table, names=("Red",), **more) as (board, (red,)):
        submit_predictions(board, red, 10)
        path = close_and_bundle(board, tmp_path / "bundle")
    forge = BundleForge(read_records(path))
    team = {"id": forge.standings[0]["team"], "name": None}
    row = {"team": team, "baseline": False, "score": 0.0, "display": 1.0, "submission": "none"}
    closed = format_time(forge.first("closed")["time"])
    forge.finals = {"board": "digits", "closed": closed, "n": 9, "beta": 0.05, "rows": [row]}
    forge.rank()
    check_refused(forge, "The bundle has a final ranking but no private rows.")
    forge.files()[0]["selected"] = True
    check_refused(forge, SELECTED_TWICE)
