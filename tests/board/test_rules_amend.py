"""Rules that may be amended after the start, and rules that may not."""

import pytest

from ladderboard.board import (
    FileRules,
    FinalsRules,
    PhaseRules,
    RateLimitRules,
    Rules,
    diff_rules,
    read_rules,
)
from ladderboard.board._rules._text import read_time
from ladderboard.errors import InvalidRules

TEAM = "slug: digits\nloss: accuracy\nquestions: 1000\nteams: 50\nend: 2027-01-31 AoE\n"
BOARD = TEAM + "ladder: board\n"


def parse_time(text):
    return read_time("at", text)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"title": "New"}, {"title": "New"}),
        ({"description": "New"}, {"description": "New"}),
        ({"per_team": 30}, {"per_team": 30}),
        ({"per_team": 5}, {"per_team": 5, "share": 5}),
        ({"questions": 2010}, {"questions": 2010, "per_team": 40, "pool": 10}),
        ({"questions": 2000, "per_team": 20}, {"per_team": 20}),
        ({"questions": 2000, "per_team": None}, {"per_team": 40}),
        ({"window": {"questions": 2, "hours": 1}}, {"window": RateLimitRules(2, 3600)}),
        ({"visibility": "frozen"}, {"visibility": "frozen"}),
        ({"registration": "organiser"}, {"registration": "organiser", "teams": 50}),
        ({"finals": {"selections": 3}}, {"finals": FinalsRules(3)}),
        ({"files": {"bytes": "1 MB"}}, {"files": FileRules(bytes=10**6)}),
        ({"play": True}, {"play": True}),
        ({"play": None}, {"play": False}),
        ({"end": None}, {"phases": (PhaseRules("main"),)}),
        (
            {"end": "2027-03-01T00:00Z"},
            {"phases": (PhaseRules("main", None, parse_time("2027-03-01T00:00Z")),)},
        ),
        ({"start": "2027-01-01T00:00Z"}, {"deadline": parse_time("2027-02-01T12:00Z")}),
        ({"phases": None}, {"phases": (PhaseRules("main"),)}),
        ({"phases": [{"name": "a"}]}, {"phases": (PhaseRules("a"),)}),
    ],
)
def test_rules_that_may_change(changes, expected):
    amended = read_rules(TEAM).amended(changes)
    assert {name: getattr(amended, name) for name in expected} == expected
    assert Rules.from_description(amended.describe()) == amended


def test_only_an_equal_part_follows_submissions_and_teams():
    rules = read_rules(BOARD)
    assert rules.amended({"teams": 100}).per_team == 10
    limited = read_rules(TEAM + "per_team: 30\n")
    assert limited.amended({"submissions": 2000}).per_team == 30
    assert limited.amended({"per_team": None}).per_team == 20


def test_a_file_keeps_the_limit_that_it_names():
    rules = read_rules(TEAM)
    for limit, per_team in (("per_team: 20\n", 20), ("", 40)):
        after = read_rules(TEAM.replace("1000", "2000") + limit)
        assert rules.amended(diff_rules(rules, after)).per_team == per_team


def test_an_amendment_changes_only_the_given_keys():
    rules = read_rules(TEAM + "window: {questions: 5, hours: 2}\ndisplay: {digits: 2}\n")
    assert rules.amended({}) == rules
    assert rules.amended({"window": {"questions": 3}}).window == RateLimitRules(3, 7200)
    assert rules.amended({"window": {"days": 1}}).window == RateLimitRules(5, 86_400)
    assert rules.amended({"window": None}).window is None
    display = rules.amended({"display": {"name": "right"}}).display
    assert (display.name, display.digits, display.direction) == ("right", 2, "higher")


def test_the_difference_of_two_rules_amends_one_into_the_other():
    without_play, with_play = read_rules(TEAM), read_rules(TEAM + "play: true\nfiles: {rows: 9}\n")
    changes, reverse_changes = (
        diff_rules(without_play, with_play),
        diff_rules(with_play, without_play),
    )
    assert changes == {"files": {"rows": 9}, "play": True}
    assert reverse_changes["play"] is None
    assert without_play.amended(changes) == with_play
    assert with_play.amended(reverse_changes) == without_play


def test_one_start_and_one_end_are_those_of_all_phases():
    text = TEAM.replace("end: 2027-01-31 AoE\n", "") + (
        "phases: [{name: a, end: 2027-01-01T00:00Z}, {name: b, start: 2027-01-02T00:00Z}]\n"
    )
    amended = read_rules(text).amended({"start": "2026-01-01T00:00Z", "end": "2028-01-01T00:00Z"})
    assert amended.phases[0] == PhaseRules(
        "a", parse_time("2026-01-01T00:00Z"), parse_time("2027-01-01T00:00Z")
    )
    assert amended.phases[1] == PhaseRules(
        "b", parse_time("2027-01-02T00:00Z"), parse_time("2028-01-01T00:00Z")
    )


def test_in_one_ladder_teams_may_come_at_the_cost_of_shares():
    assert read_rules(BOARD).amended({"teams": 100}).share == 10


@pytest.mark.parametrize(
    ("changes", "keys", "message"),
    [
        ({"slug": "x"}, ["slug"], "it is the board's address"),
        ({"loss": "brier"}, ["loss"], "releases under two losses cannot be compared"),
        ({"mechanism": "exact"}, ["mechanism"], "the mechanism that the commitment names"),
        ({"beta": 0.1}, ["beta"], "Beta cannot change"),
        ({"ladder": "board"}, ["ladder"], "Ladder cannot change"),
        ({"baselines": []}, ["baselines"], "cannot change"),
        ({"display": {"direction": "lower"}}, ["display.direction", "display.as"], "cannot change"),
        ({"questions": 999}, ["questions"], "must be at least 1000, the current number; got 999"),
        ({"questions": None}, ["submissions"], "Submissions is missing"),
        ({"teams": 49}, ["teams"], "cannot be lowered from 50"),
        ({"accounts": 3}, ["accounts"], "the mechanism was calibrated for it"),
        ({"protection": "open"}, ["protection"], "the mechanism was calibrated for it"),
        ({"end": "2027-01-31"}, ["phases[0].end"], "needs an offset"),
        ({"end": "2027-01-31 AoE", "phases": [{}]}, ["phases"], "either phases"),
        ({"tilte": "x"}, ["tilte"], "did you mean title?"),
        ({"loss": "brier", "title": 7}, ["loss", "title"], "2 problems were found"),
        ({7: "x"}, [None], "must be text"),
    ],
)
def test_rules_that_may_not_change(changes, keys, message):
    rules = read_rules(TEAM)
    described_before = rules.describe()
    with pytest.raises(InvalidRules) as caught:
        rules.amended(changes)
    assert [problem.column for problem in caught.value.problems] == keys
    assert message in str(caught.value)
    assert rules.describe() == described_before


def test_the_budget_may_fall_to_what_was_used_where_that_is_known():
    rules = read_rules(TEAM)
    assert rules.amended({"questions": 400, "per_team": 8}, used=400).questions == 400
    with pytest.raises(InvalidRules, match="at least 401, the number used; got 400"):
        rules.amended({"questions": 400, "per_team": 8}, used=401)


def test_a_board_for_known_teams_cannot_open_to_everybody():
    """It was calibrated for an attacker with two accounts; anyone may then hold all of them."""
    with pytest.raises(
        InvalidRules, match=r"calibrated for an attacker with 2 .* all 50"
    ) as caught:
        read_rules(TEAM).amended({"registration": "open"})
    assert "Create a new board with registration: open, or invite the teams." in str(caught.value)
    with pytest.raises(InvalidRules, match="Registration cannot become open"):
        read_rules(TEAM + "registration: sign_in\n").amended({"registration": "open", "teams": 60})


@pytest.mark.parametrize(
    "text",
    [
        TEAM + "accounts: 50\n",
        BOARD,
        TEAM + "registration: open\n",
        TEAM + "mechanism: {name: ladder, step: 0.01}\n",
    ],
    ids=["all accounts declared", "one ladder", "open before", "named mechanism"],
)
def test_a_board_that_counts_on_all_accounts_can_open(text):
    assert read_rules(text).amended({"registration": "open"}).registration == "open"
    assert read_rules(text).amended({"registration": "organiser"}).registration == "organiser"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"end": "2027-01-05"}, "End needs an offset"),
        ({"start": "soon"}, "Start must be a time"),
        ({"metric": "brier"}, "Metric cannot change"),
        ({"loss": "brier"}, "Metric cannot change"),
        ({"submissions": 2}, "for each of 4 teams; raise submissions to at least 4."),
        ({"questions": 2}, "for each of 4 teams; raise submissions to at least 4."),
        ({"dedline": "2027-01-05 AoE"}, "There is no key 'dedline'; did you mean end?"),
        ({"deadline": "2027-01-05 AoE"}, "did you mean end?"),
        ({"teamz": 5}, "did you mean teams?"),
    ],
)
def test_a_refusal_names_what_was_typed(changes, message):
    rules = read_rules("slug: a\nmetric: accuracy\nsubmissions: 100\nteams: 4\n")
    with pytest.raises(InvalidRules) as refused:
        rules.amended(changes, used=0)
    assert message in str(refused.value)
    assert "hases[" not in str(refused.value)


def test_an_unknown_metric_is_called_a_metric():
    with pytest.raises(InvalidRules, match="There is no metric named 'roc_aucc'"):
        read_rules("slug: a\nmetric: roc_aucc\nsubmissions: 100\n")
